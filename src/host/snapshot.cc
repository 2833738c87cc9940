#include "host/snapshot.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/files.h"
#include "base/strings.h"
#include "host/cgroup.h"
#include "host/process.h"

namespace anvil::host {

namespace {

constexpr std::string_view kMarker = "ANVIL_RUN_ID=";

std::string text_of(const std::string& path) {
  return base::read_file(path).value_or(std::string());
}

Json text_or_null(std::string_view text) {
  return text.empty() ? Json() : Json(base::to_valid_utf8(base::trim(text)));
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// {"total","free"} of the file system that holds the path or its nearest parent that exists.
Json space(std::string path) {
  struct statvfs info = {};
  while (statvfs(path.c_str(), &info) != 0) {
    const std::string parent = base::parent_path(path);
    if (parent == path || parent.empty()) return nullptr;
    path = parent;
  }
  const auto block = static_cast<uint64_t>(info.f_frsize);
  return {{"total", block * info.f_blocks}, {"free", block * info.f_bavail}};
}

// Null where there is no limit.
Json resource_limit(__rlimit_resource which) {
  struct rlimit limit = {};
  if (getrlimit(which, &limit) != 0) return nullptr;
  const auto value = [](rlim_t v) { return v == RLIM_INFINITY ? Json() : Json(uint64_t{v}); };
  return {{"soft", value(limit.rlim_cur)}, {"hard", value(limit.rlim_max)}};
}

Json load() {
  const std::string text = text_of("/proc/loadavg");
  const std::vector<std::string_view> words = base::split(text, ' ');
  Json out = Json::array();
  for (size_t i = 0; i < 3 && i < words.size(); ++i)
    out.push_back(or_null(base::parse_double(words[i])));
  return out;
}

// Processes of earlier runs that still live: nobody stops them any more.
Json orphans() {
  Json out = Json::array();
  for (int pid : find_marked(kMarker)) {
    const std::vector<std::string> words = command_line(pid);
    out.push_back(
        {{"pid", pid},
         {"run", environment_value(pid, kMarker.substr(0, kMarker.size() - 1)).value_or("")},
         {"command", words.empty() ? "" : base::base_name(base::to_valid_utf8(words[0]))}});
  }
  return out;
}

Json clock_facts() {
  struct timex state = {};
  const int code = adjtimex(&state);
  return {
      {"source",
       text_or_null(text_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"))},
      {"synchronised",
       code < 0 ? Json() : Json(code != TIME_ERROR && (state.status & STA_UNSYNC) == 0)}};
}

}  // namespace

MemoryInfo parse_meminfo(std::string_view text) {
  MemoryInfo info;
  for (std::string_view line : base::split(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view value = base::trim(line.substr(colon + 1));
    if (!value.ends_with(" kB")) continue;
    value.remove_suffix(3);
    const uint64_t bytes = static_cast<uint64_t>(std::max<int64_t>(
                               base::parse_int(base::trim(value)).value_or(0), 0)) *
                           1024;
    const std::string_view key = line.substr(0, colon);
    if (key == "MemTotal") info.total = bytes;
    if (key == "MemAvailable") info.available = bytes;
    if (key == "SwapTotal") info.swap_total = bytes;
    if (key == "SwapFree") info.swap_free = bytes;
    if (key == "Cached") info.page_cache = bytes;
  }
  return info;
}

MemoryInfo read_memory() {
  return parse_meminfo(text_of("/proc/meminfo"));
}

std::string parse_cpu_model(std::string_view cpuinfo) {
  std::string implementer, part;
  for (std::string_view line : base::split(cpuinfo, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = base::trim(line.substr(0, colon));
    const std::string value(base::trim(line.substr(colon + 1)));
    if (key == "model name") return value;
    if (key == "CPU implementer" && implementer.empty()) implementer = value;
    if (key == "CPU part" && part.empty()) part = value;
  }
  return implementer.empty() ? std::string() : "ARM implementer " + implementer + " part " + part;
}

Json snapshot(const SnapshotRequest& request) {
  std::unique_ptr<GpuProbe> own;
  GpuProbe* probe = request.gpus;
  if (probe == nullptr) {
    own = open_nvml();
    probe = own.get();
  }
  const GpuInventory inventory = probe->inventory();
  const MemoryInfo memory = read_memory();
  struct utsname system = {};
  uname(&system);

  Json out;
  out["cpu"] = {{"model", text_or_null(parse_cpu_model(text_of("/proc/cpuinfo")))},
                {"cores", usable_cores()},
                {"online", sysconf(_SC_NPROCESSORS_ONLN)},
                {"quota_cores", or_null(cgroup_cores())}};
  out["memory"] = {{"total", memory.total},           {"available", memory.available},
                   {"swap_total", memory.swap_total}, {"swap_free", memory.swap_free},
                   {"page_cache", memory.page_cache}, {"cgroup_limit", or_null(cgroup_memory())}};
  out["shm"] = base::is_directory("/dev/shm") ? space("/dev/shm") : Json();
  out["disk"] = Json::object();
  for (const auto& [name, path] : request.folders) out["disk"][name] = space(path);
  out["kernel"] = text_or_null(system.release);
  out["architecture"] = text_or_null(system.machine);
  out["platform"] = platform();
  out["gpus"] = Json::array();
  for (const Gpu& gpu : inventory.gpus) out["gpus"].push_back(to_json(gpu, request.roles));
  out["gpu_driver"] = text_or_null(inventory.driver);
  out["gpu_cuda"] = text_or_null(inventory.cuda_driver);
  out["gpu_absent"] = text_or_null(inventory.absent);
  out["clock"] = clock_facts();
  out["load"] = load();
  out["limits"] = {{"nofile", resource_limit(RLIMIT_NOFILE)},
                   {"memlock", resource_limit(RLIMIT_MEMLOCK)}};
  out["boot_id"] = text_or_null(boot_id());
  out["anvil_orphans"] = orphans();
  return out;
}

}  // namespace anvil::host
