#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace anvil::engine {

// A process of an earlier run's engine that still lives although the run does not.
struct Orphan {
  std::string run;  // run id
  int pid = 0;
  uint64_t pid_start = 0;  // clock ticks since boot
  std::string command;     // argv joined by blanks, cut at 300 bytes
  int port = 0;            // where it listens; 0 if unknown
  bool root = false;       // the process that the run started itself, not a child of it
};
// {"run","pid","command","port","root"}
Json to_json(const Orphan& orphan);

// Engines that were started by a run and outlived it: found by the marker in their environment
// (ANVIL_RUN_ID, where this user may read it) and by the launch.json of the run directories under
// `runs_dir` (pid, start time of the pid and boot id must all agree, so a reused pid is never
// reported). A run whose own anvil still lives is not an orphan: processes that descend from a
// living anvil, and `except_run`, are left out. Sorted by run, then pid.
std::vector<Orphan> find_orphans(const std::string& runs_dir, const std::string& except_run = {});

}  // namespace anvil::engine
