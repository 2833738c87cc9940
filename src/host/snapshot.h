#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "host/gpu.h"

namespace anvil::host {

struct SnapshotRequest {
  std::vector<std::pair<std::string, std::string>>
      folders;                               // name -> path; by name in the snapshot
  GpuProbe* gpus = nullptr;                  // null: open NVML
  std::map<std::string, std::string> roles;  // GPU uuid -> role
};

// host.json:
// {"cpu":{"model","cores","online","quota_cores"},"memory":{"total","available","cgroup_limit",
// "swap_total","swap_free","page_cache"},"shm":{"total","free"},"disk":{name:{"total","free"}},"kernel",
// "platform":"bare|wsl2|container","gpus":[...],"gpu_driver","gpu_absent","clock":{"source","synchronised"},
// "load":[1,5,15],"limits":{"nofile","memlock"},"boot_id","anvil_orphans":[{"pid","run","command"}]}.
// Sizes in bytes; what cannot be read is null. No host name, user, path or GPU UUID.
Json snapshot(const SnapshotRequest& request = {});

struct MemoryInfo {
  uint64_t total = 0, available = 0, swap_total = 0, swap_free = 0, page_cache = 0;  // bytes
};
MemoryInfo parse_meminfo(std::string_view text);
MemoryInfo read_memory();

// First "model name" of /proc/cpuinfo, or the part and implementer on ARM; "" if absent.
std::string parse_cpu_model(std::string_view cpuinfo);
// cpu.max of cgroup v2: "max 100000" is none, "150000 100000" is 1.5 cores.
std::optional<double> parse_cpu_max(std::string_view text);
// memory.max; nothing for "max" and for v1's "no limit" number.
std::optional<uint64_t> parse_memory_max(std::string_view text);

// "bare", "wsl2" or "container", from /proc/version, the marker files and PID 1's cgroup.
struct PlatformHints {
  std::string proc_version;
  std::string init_cgroup;
  bool dockerenv = false;     // /.dockerenv
  bool containerenv = false;  // /run/.containerenv
  std::string container_env;  // $container of PID 1 or of us
  bool dxg = false;           // /dev/dxg
  bool overlay_root = false;  // the root file system is an overlay
};
std::string platform_of(const PlatformHints& hints);
std::string platform();

// Cores this process may use: affinity mask, cut by a cgroup quota (rounded up), at least 1.
int usable_cores();

}  // namespace anvil::host
