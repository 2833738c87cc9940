#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "evidence/compare.h"
#include "evidence/compare_values.h"

namespace anvil::evidence {

// Fewest complete pairs for an interval at all, and for one that reaches its level: the range of n
// values covers their median with probability 1 - 2^(1-n), which is 0.75 for 3 and above 0.95 from
// 6 on.
inline constexpr size_t kFewestPairs = 3;
inline constexpr size_t kTrustedPairs = 6;

// What every metric of a campaign is computed with.
struct ComparisonRules {
  uint64_t seed = 0;
  double level = 0.95;
  std::optional<double> margin;
};

// Why an interval over this many complete pairs is absent or not to be trusted; "" if it is.
std::string distrust(size_t complete_pairs);

// Complete pairs among the runs that count.
struct PairCount {
  size_t complete = 0, incomplete = 0;
};
PairCount count_pairs(const std::vector<RunForComparison>& runs);

// One entry of "metrics" in comparison.json, but for "p_holm" and "holm_rejects", which need the
// whole family.
Result<Json> compare_metric(const ComparedMetric& metric, const std::string& lane,
                            const std::vector<RunForComparison>& runs,
                            const ComparisonRules& rules);

}  // namespace anvil::evidence
