#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/files.h"
#include "base/strings.h"
#include "host/cgroup.h"
#include "host/process.h"
#include "host/snapshot.h"

namespace anvil::host {

namespace {

std::string text_of(const std::string& path) {
  return base::read_file(path).value_or(std::string());
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The mount of "/" in /proc/self/mountinfo: "ID PARENT MAJ:MIN ROOT MOUNTPOINT ... - TYPE ...".
bool root_is_overlay(std::string_view mountinfo) {
  for (std::string_view line : base::split(mountinfo, '\n')) {
    const std::vector<std::string_view> words = base::split(line, ' ');
    if (words.size() < 5 || words[4] != "/") continue;
    const auto dash = std::find(words.begin(), words.end(), "-");
    return dash != words.end() && dash + 1 != words.end() && contains(*(dash + 1), "overlay");
  }
  return false;
}

}  // namespace

std::string platform_of(const PlatformHints& hints) {
  const std::string version = base::lower(hints.proc_version);
  const bool container = hints.dockerenv || hints.containerenv || hints.overlay_root ||
                         (!hints.container_env.empty() && hints.container_env != "wsl") ||
                         contains(hints.init_cgroup, "docker") ||
                         contains(hints.init_cgroup, "kubepods") ||
                         contains(hints.init_cgroup, "libpod");
  // A container on WSL2 has the limits of WSL2: that is what matters to an engine.
  if (contains(version, "microsoft") || hints.dxg || hints.container_env == "wsl") return "wsl2";
  return container ? "container" : "bare";
}

std::string platform() {
  PlatformHints hints;
  hints.proc_version = text_of("/proc/version");
  hints.init_cgroup = text_of("/proc/1/cgroup");
  hints.dockerenv = base::exists("/.dockerenv");
  hints.containerenv = base::exists("/run/.containerenv");
  hints.dxg = base::exists("/dev/dxg");
  hints.overlay_root = root_is_overlay(text_of("/proc/self/mountinfo"));
  const char* own = std::getenv("container");
  hints.container_env = environment_value(1, "container").value_or(own == nullptr ? "" : own);
  return platform_of(hints);
}

std::optional<double> parse_cpu_max(std::string_view text) {
  const std::vector<std::string_view> words = base::split(base::trim(text), ' ');
  if (words.size() != 2) return std::nullopt;
  const std::optional<int64_t> quota = base::parse_int(words[0]);
  const std::optional<int64_t> period = base::parse_int(words[1]);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<uint64_t> parse_memory_max(std::string_view text) {
  // Version 1 says "no limit" with a number near 2^63, rounded to pages.
  const std::optional<int64_t> limit = base::parse_int(base::trim(text));
  if (!limit || *limit <= 0 || *limit >= (int64_t{1} << 60)) return std::nullopt;
  return static_cast<uint64_t>(*limit);
}

std::vector<std::string> cgroup_folders(std::string_view self_cgroup, std::string_view controller) {
  std::string v1, v2;
  for (std::string_view line : base::split(self_cgroup, '\n')) {
    const std::vector<std::string_view> parts = base::split(line, ':');
    if (parts.size() < 3) continue;
    const std::string path(line.substr(parts[0].size() + parts[1].size() + 2));
    if (parts[1].empty()) v2 = path;
    for (std::string_view name : base::split(parts[1], ',')) {
      if (!name.empty() && name == controller) v1 = path;
    }
  }
  std::vector<std::string> folders;
  const auto add = [&](const std::string& root, std::string path) {
    while (path.size() > 1) {
      folders.push_back(root + path);
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
    folders.push_back(root);
  };
  if (!v1.empty()) add("/sys/fs/cgroup/" + std::string(controller), v1);
  if (!v2.empty()) add("/sys/fs/cgroup", v2);
  return folders;
}

std::optional<double> cgroup_cores() {
  std::optional<double> cores;
  for (const std::string& folder : cgroup_folders(text_of("/proc/self/cgroup"), "cpu")) {
    std::string text = text_of(folder + "/cpu.max");
    if (text.empty()) {
      text = std::string(base::trim(text_of(folder + "/cpu.cfs_quota_us"))) + " " +
             std::string(base::trim(text_of(folder + "/cpu.cfs_period_us")));
    }
    if (const auto limit = parse_cpu_max(text)) cores = std::min(cores.value_or(*limit), *limit);
  }
  return cores;
}

std::optional<uint64_t> cgroup_memory() {
  std::optional<uint64_t> bytes;
  for (const std::string& folder : cgroup_folders(text_of("/proc/self/cgroup"), "memory")) {
    for (const char* file : {"/memory.max", "/memory.limit_in_bytes"}) {
      if (const auto limit = parse_memory_max(text_of(folder + file))) {
        bytes = std::min(bytes.value_or(*limit), *limit);
      }
    }
  }
  return bytes;
}

int usable_cores() {
  cpu_set_t set;
  int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
  if (const auto quota = cgroup_cores())
    cores = std::min(cores, static_cast<int>(std::ceil(*quota)));
  return std::max(cores, 1);
}

}  // namespace anvil::host
