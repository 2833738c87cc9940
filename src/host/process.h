#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace anvil::host {

// One process as /proc shows it. (pid, start_ticks) within one boot names a process for good.
struct Process {
  int pid = 0;
  int ppid = 0;
  int pgid = 0;
  int session = 0;
  char state = '?';
  uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat, clock ticks since boot
  uint64_t rss_bytes = 0;
  Nanos cpu = 0;     // user + system, without waited-for children
  std::string comm;  // at most 15 bytes
};

// The text of /proc/PID/stat; nothing when it is not of that form.
std::optional<Process> parse_stat(std::string_view text, uint64_t page_size,
                                  uint64_t ticks_per_second);

// Nothing when the process does not exist.
std::optional<Process> read_process(int pid);
// Exact arguments; empty for kernel threads, zombies and processes of others.
std::vector<std::string> command_line(int pid);
// Every process that can be seen.
std::vector<Process> all_processes();

// The roots that exist and everything below them by parent, in `all`.
std::vector<Process> tree_of(const std::vector<Process>& all, const std::vector<int>& roots);
// Processes whose environment at exec holds exactly `marker` ("ANVIL_RUN_ID=..."): finds children
// that lost their parent or made a session of their own. Only processes of this user can be read;
// this process itself is left out.
// A marker that ends in '=' matches any value.
std::vector<int> find_marked(std::string_view marker);
// The value of an environment variable of a process at exec; nothing if unreadable or absent.
std::optional<std::string> environment_value(int pid, std::string_view name);
// Descendants of the roots together with everything that carries the marker ("" = none).
std::vector<Process> serve_tree(const std::vector<int>& roots, std::string_view marker);

// Names this boot; a pid recorded under another boot means nothing. "" where /proc lacks it.
std::string boot_id();

}  // namespace anvil::host
