#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace anvil::report {

// How an invented load run behaves.
struct BenchShape {
  std::string name = "bench";
  uint64_t seed = 1;
  double speed = 1;         // every time is divided by it
  size_t closed_lanes = 4;  // how many of c1, c4, c16, c32
  bool open_loop = true;    // lanes that send by the clock as well, with objectives
  bool troubled = false;  // our client is the bottleneck, its error is large, the path is buffered
  bool counters = true;   // the engine reports speculation
  bool hostile = false;   // names and reasons that try to become markup
  int failures = 0;       // of the requests of each lane
  int requests = 0;       // of each lane; 0 = as many as a lane of that load would have
};

// Writes a run of lanes alone, with load.json and calibration.json: the same bytes every time. Not
// sealed. `directory` must not exist.
Result<void> write_sample_bench(const std::string& directory, const BenchShape& shape);

// Writes a campaign folder. Kinds:
//   "effect"       six pairs, B is faster; one run is excluded
//   "aa"           both arms are the same
//   "exploratory"  two variables differ, three pairs, nothing is resolved, B loses requests
//   "hostile"      names, reasons and values that try to become markup
Result<void> write_sample_campaign(const std::string& directory, std::string_view kind);

}  // namespace anvil::report
