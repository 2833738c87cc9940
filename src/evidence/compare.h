#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace anvil::evidence {

// One run of a campaign that compares two arms. `a` is the one compared against (the control).
struct RunForComparison {
  int64_t index = 0;  // place in the order of the campaign
  std::string arm;    // "a" or "b"
  int64_t pair = 0;   // runs with the same number are compared with each other
  std::string run;    // id
  // Why the run counts for nothing; it is listed and enters the sensitivity figures only.
  std::optional<std::string> excluded;
  Json results;  // results.json; null if the run has none
};

// comparison.json of a campaign, a pure function of its plan and its runs.
//
// `plan`: {"primary": {"lane", "metric"}, "metrics": ["ttfo_ms.p50", ...], "margin": 0.05, "seed",
// "order", "stop"}, all optional: without "metrics" the usual ones, without "margin" no
// equivalence. A metric is named as in results.json, with a percentile where it has one
// ("ttfo_ms.p90"; p50 where none is written).
//
// {"schema":"anvil/comparison/v1","primary","margin","seed","order","stop","exploratory","level",
//  "resamples","pairs":{"complete","incomplete","trusted","because"},"runs":[...],"excluded":[...],
//  "lanes":[{"id","arms":{"a","b"},"metrics":[...]}]}
//
// Ratios are b / a of the medians of run-level values, intervals a block bootstrap over pairs. A
// metric resolves only where the interval excludes 1 and the ratio is beyond the A/A noise floor;
// else it says "not resolved", with the reason. Below 3 complete pairs there is no interval; below
// 6 it is marked as not trusted. docs/compare.md has the rules.
//
// Refuses an unknown metric, an arm other than a or b, a margin that is not above 0. Results of any
// shape give a document, with null and a reason where a figure is missing.
Result<Json> compare(const Json& plan, const std::vector<RunForComparison>& runs);

}  // namespace anvil::evidence
