#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "qualify/checks.h"

namespace anvil::qualify {

// The context ladder of a suite: [ladder].
struct LadderPlan {
  std::vector<int64_t> targets;               // prompt tokens, ascending
  std::vector<double> depths{0.1, 0.5, 0.9};  // where the needles lie, 0..1
  int64_t output_tokens = 64;
  int64_t tolerance_tokens = 2;  // a prompt may miss its target by the larger of the two
  double tolerance_percent = 0.1;
  bool cached = true;  // also the prefix-cached row
  bool plain = false;  // plain text through /v1/completions: base models
};
// Reads suite["ladder"] and suite["prompt_style"].
LadderPlan ladder_plan(const Json& suite);

// What one rung did, for progress and the journal; results.json derives its own from the rows.
struct RungReport {
  int64_t target = 0;
  int64_t prompt_tokens = 0;  // of the cold row, as the engine counted
  std::string method;         // how the prompt was made exact: "tokenize" or "usage"
  std::vector<int64_t> rows;  // cold, prefix
  bool healthy = false;
  std::string stopped;  // why the climb ended here, "" if it goes on
};
Json to_json(const RungReport& rung);

// Climbs: per target one cold row, if asked the same prompt again as state "prefix", then a health
// probe. Stops at the first rung that fails hard: the engine refused or broke the cold request, or
// no longer answers. Rows: Purpose::kLadder, lane "ladder-<target>", item and cache_state
// "cold"/"prefix"; kCalibrate for the exact-token search; kProbe for health. All needles of a rung
// are asked for in one question, which costs one prefill per row; row.expect is
// {"target":n,"tolerance":n,"needles":[{"depth":0.1,"code":"..."},...]} and derive() grades each
// code against the answer.
Result<std::vector<RungReport>> run_ladder(
    CheckContext context, const LadderPlan& plan,
    const std::function<void(const RungReport&)>& finished = {});

}  // namespace anvil::qualify
