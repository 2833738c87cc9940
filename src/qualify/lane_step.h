#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "qualify/checks.h"

namespace anvil::qualify {

struct LaneReport {
  int64_t lanes = 0;
  int64_t requests = 0;  // measured ones
  int64_t ok = 0;
};

// Follows run_lanes().
struct LaneObserver {
  std::function<void(int64_t done, int64_t total, const std::string& what)> progress;
  // After each lane, an element of "lanes" in load.json: {"id","plan_digest",
  // "plan","prompt_tokens_estimated","client":
  // measure::LoadReport,"counters":{"before","after","error"}};
  // a probe of a search for the highest good rate also has "of", the lane, and "rate".
  std::function<Result<void>(Json entry)> lane_done;
};

// Runs every [[lane]] of the suite in order: prompts of exact length, warm-up and priming one by
// one, then the measured requests at the lane's concurrency. `salt` (the run id) makes cold prompts
// new to this engine. Every attempt becomes a row. Errors: kCancelled; `record` failing; a prompt
// that cannot be made exact; an engine that no longer answers after a lane (the lanes after it
// would only repeat the failure). Failed requests are evidence, not errors.
Result<LaneReport> run_lanes(const CheckContext& context, const Json& suite,
                             const LaneObserver& observer);

}  // namespace anvil::qualify
