#include "engine/orphans.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/files.h"
#include "base/strings.h"
#include "engine/process_tree.h"
#include "engine/runner.h"
#include "host/process.h"

namespace anvil::engine {

namespace {

constexpr uint64_t kLaunchLimit = 4 << 20;

// "<pid>:<start ticks>" of a process that still lives.
bool lives(std::string_view owner) {
  const size_t colon = owner.find(':');
  if (colon == std::string_view::npos) return false;
  const auto pid = base::parse_int(owner.substr(0, colon));
  const auto start = base::parse_int(owner.substr(colon + 1));
  if (!pid || !start) return false;
  const auto process = host::read_process(static_cast<int>(*pid));
  return process && process->state != 'Z' && process->start_ticks == static_cast<uint64_t>(*start);
}

Orphan orphan_of(const std::string& run, const host::Process& process) {
  Orphan orphan;
  orphan.run = run;
  orphan.pid = process.pid;
  orphan.pid_start = process.start_ticks;
  orphan.command = command_of(process.pid);
  const std::vector<int> ports = listening_ports(process.pid);
  if (!ports.empty()) orphan.port = ports.front();
  orphan.root = process.session == process.pid;
  return orphan;
}

// The root process that a run directory names, if it is still that process.
std::optional<Orphan> from_launch(const std::string& run_dir, const std::string& boot) {
  const auto text = base::read_file(base::join_path(run_dir, "launch.json"), kLaunchLimit);
  if (!text) return std::nullopt;
  const auto launch = base::parse_json(*text, "launch.json");
  if (!launch || !launch->is_object()) return std::nullopt;
  const auto number = [&](const char* key) -> int64_t {
    const auto found = launch->find(key);
    return found != launch->end() && found->is_number_integer() ? found->get<int64_t>() : 0;
  };
  const auto word = [&](const char* key) {
    const auto found = launch->find(key);
    return found != launch->end() && found->is_string() ? found->get<std::string>() : "";
  };
  if (boot.empty() || word("boot_id") != boot || lives(word("owner"))) return std::nullopt;
  const auto process = host::read_process(static_cast<int>(number("pid")));
  if (!process || process->state == 'Z' ||
      process->start_ticks != static_cast<uint64_t>(number("pid_start"))) {
    return std::nullopt;
  }
  const std::string run = word("run");
  Orphan orphan = orphan_of(run.empty() ? base::base_name(run_dir) : run, *process);
  orphan.root = true;
  if (const auto spec = launch->find("spec");
      orphan.port == 0 && spec != launch->end() && spec->is_object()) {
    const auto port = spec->find("port");
    if (port != spec->end() && port->is_number_integer()) orphan.port = port->get<int>();
  }
  return orphan;
}

}  // namespace

Json to_json(const Orphan& orphan) {
  return {{"run", orphan.run},
          {"pid", orphan.pid},
          {"command", orphan.command},
          {"port", orphan.port == 0 ? Json() : Json(orphan.port)},
          {"root", orphan.root}};
}

std::vector<Orphan> find_orphans(const std::string& runs_dir, const std::string& except_run) {
  std::map<std::pair<int, uint64_t>, Orphan> found;
  const std::string marker(kRunMarker);
  for (const int pid : host::find_marked(marker + "=")) {
    const auto process = host::read_process(pid);
    const auto run = host::environment_value(pid, marker);
    if (!process || process->state == 'Z' || !run || *run == except_run || pid == getpid()) {
      continue;
    }
    if (lives(host::environment_value(pid, kOwnerMarker).value_or(""))) continue;
    found.emplace(std::pair(pid, process->start_ticks), orphan_of(*run, *process));
  }
  const std::string boot = host::boot_id();
  if (const auto names = base::list_directory(runs_dir)) {
    for (const std::string& name : *names) {
      auto orphan = from_launch(base::join_path(runs_dir, name), boot);
      if (!orphan || orphan->run == except_run) continue;
      found.insert_or_assign(std::pair(orphan->pid, orphan->pid_start), std::move(*orphan));
    }
  }
  std::vector<Orphan> result;
  for (auto& [process, orphan] : found) result.push_back(std::move(orphan));
  std::sort(result.begin(), result.end(), [](const Orphan& a, const Orphan& b) {
    return std::tie(a.run, a.pid) < std::tie(b.run, b.pid);
  });
  return result;
}

}  // namespace anvil::engine
