#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "stats/percentile.h"

namespace anvil::evidence {

// A figure of a lane that two arms are compared by.
struct ComparedMetric {
  enum class Better { kLower, kHigher, kNeither };
  // How a failed request counts where every request that was sent is to count.
  enum class Failure {
    kNever,     // a time: it never came
    kZeroRate,  // a rate of one request: 0
    kNoOutput,  // output of the lane over its wall time: no tokens, but its time
    kCounted,   // the figure already holds failures, or is not about single requests
    kUndefined  // a failed request has no such value
  };

  std::string name;             // canonical: "ttfo_ms.p90", "success_rate"
  std::string member;           // dotted path in the lane
  stats::PerMille percentile;   // 0 where the member is a plain number
  std::string percentile_name;  // "p90"; empty
  std::string unit;
  Better better;
  Failure failure;
};
// Refuses an unknown name, saying which there are.
Result<ComparedMetric> compared_metric(std::string_view name);
// What a campaign without a list is compared by.
std::vector<std::string> usual_metrics();

// The value of one run; where it is absent `because` says why. `below_floor`: the run had too few
// requests to publish the percentile, and its nearest-rank median stands in, which is fit for a
// comparison of runs and for nothing else.
struct RunValue {
  std::optional<double> value;
  bool below_floor = false;
  std::string because;
};
// Over the requests that succeeded.
RunValue value_of_successes(const Json& lane, const ComparedMetric& metric);
// Over every request that was sent (intention to treat): see ComparedMetric::Failure. Percentiles
// among failures need the lane's "curves"; a percentile that falls on a request that never answered
// is absent. The output rate needs the lane's "wall_s" where requests failed.
RunValue value_of_all(const Json& lane, const ComparedMetric& metric);

// The lane with this id in a results document; null if it has none.
const Json& lane_of(const Json& results, std::string_view id);

// One curve ([[q, value], ...], the share of values up to `value`) of several, each weighted by the
// number of values behind it. Null without any. At most 96 points.
struct WeightedCurve {
  const Json* points;
  double weight;
};
Json pooled_curve(const std::vector<WeightedCurve>& curves);

}  // namespace anvil::evidence
