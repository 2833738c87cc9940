#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace anvil::host {

// The folders under /sys/fs/cgroup whose limits apply to a process, from the innermost out, for the
// text of its /proc/PID/cgroup; version 1 and version 2 hierarchies.
std::vector<std::string> cgroup_folders(std::string_view self_cgroup, std::string_view controller);

// The tightest limit of this process; nothing when there is none.
std::optional<double> cgroup_cores();
std::optional<uint64_t> cgroup_memory();  // bytes

}  // namespace anvil::host
