#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/json.h"
#include "base/result.h"
#include "evidence/campaign.h"
#include "qualify/qualify.h"

namespace anvil::qualify {

// How two arms are compared; frozen before the first run.
struct AbPlan {
  std::string primary_lane, primary_metric;  // the one endpoint that decides
  double margin = 0.05;                      // equivalence: a ratio within 1 -/+ this
  int pairs = 6;
  // Declared stop rule: end before `pairs` once the primary interval is narrower than this (as a
  // share, after at least kFewestPairs pairs); nothing = exactly `pairs`.
  std::optional<double> until_width;
  bool random_order = false;  // else ABBA
  uint64_t seed = 1;
  bool exploratory = false;  // more than one variable differs, and the report says so
};
// A signed-rank test cannot reject with fewer pairs, and looking earlier is peeking.
inline constexpr int kFewestPairs = 6;

// The arms of one pair after the other, e.g. "abbaab": ABBA turns every second pair round, so that
// a steady drift cancels out; random order draws for each pair from the seed.
std::string arm_order(const AbPlan& plan);

struct AbOutcome {
  std::string id, directory;
  Json comparison;
  int runs = 0, excluded = 0;
  bool cancelled = false;
};

// Runs both arms in turn, each run with its engine started anew (an external engine stays as it
// is), and compares. Every run is a complete run directory below the campaign's; a run that failed
// or whose client was the bottleneck is kept, listed with the reason and left out of the effect.
// `diff` is recipe::diff of the arms. On cancel what was run is compared and kept.
Result<AbOutcome> run_ab(const Inputs& a, const Inputs& b, const AbPlan& plan, const Json& diff,
                         const std::string& runs_dir, const evidence::RenderCampaign& render,
                         Observer& observer, const base::Cancel& cancel);

}  // namespace anvil::qualify
