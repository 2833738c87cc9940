#include "evidence/compare_values.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "evidence/json_access.h"

namespace anvil::evidence {

namespace {
using Better = ComparedMetric::Better;
using Failure = ComparedMetric::Failure;

struct Known {
  const char* member;
  bool distribution;
  const char* unit;
  Better better;
  Failure failure;
};
constexpr Known kKnown[] = {
    {"ttfe_ms", true, "ms", Better::kLower, Failure::kNever},
    {"ttfo_ms", true, "ms", Better::kLower, Failure::kNever},
    {"ttfv_ms", true, "ms", Better::kLower, Failure::kNever},
    {"e2e_ms", true, "ms", Better::kLower, Failure::kNever},
    {"done_ms", true, "ms", Better::kLower, Failure::kNever},
    {"generation_ms", true, "ms", Better::kLower, Failure::kNever},
    {"service_ms", true, "ms", Better::kLower, Failure::kNever},
    {"schedule_ms", true, "ms", Better::kLower, Failure::kNever},
    {"tpot_ms", true, "ms", Better::kLower, Failure::kNever},
    {"chunk_gap_ms", true, "ms", Better::kLower, Failure::kUndefined},
    {"decode_tok_s", true, "tok/s", Better::kHigher, Failure::kZeroRate},
    {"effective_prefill_tok_s", true, "tok/s", Better::kHigher, Failure::kZeroRate},
    {"computed_prefill_tok_s", true, "tok/s", Better::kHigher, Failure::kZeroRate},
    {"aggregate_output_tok_s", false, "tok/s", Better::kHigher, Failure::kNoOutput},
    {"success_rate", false, "share", Better::kNeither, Failure::kCounted},
    {"goodput.req_s", false, "1/s", Better::kHigher, Failure::kCounted},
    {"goodput.share", false, "share", Better::kNeither, Failure::kCounted},
    {"speculation.acceptance", false, "share", Better::kNeither, Failure::kUndefined},
    {"counters.acceptance", false, "share", Better::kNeither, Failure::kUndefined},
    {"counters.mean_acceptance_length", false, "tokens", Better::kNeither, Failure::kUndefined},
    {"tokens.completion", false, "tokens", Better::kNeither, Failure::kCounted},
};
constexpr std::pair<const char*, stats::PerMille> kPercentiles[] = {
    {"p50", 500}, {"p90", 900}, {"p95", 950}, {"p99", 990}};
constexpr size_t kMostPoints = 96;

RunValue absent(std::string because) {
  return {std::nullopt, false, std::move(because)};
}

// Value at this share of a curve; nothing without a curve.
std::optional<double> on_curve(const Json& curve, double share) {
  for (const Json& point : elements(curve)) {
    if (!point.is_array() || point.size() != 2 || !point[0].is_number() || !point[1].is_number())
      return std::nullopt;
    if (point[0].get<double>() >= share - 1e-9) return point[1].get<double>();
  }
  return std::nullopt;
}

// Nearest rank of the percentile among `n` values that are known by their curve and `failed` that
// lie above or below all of them.
RunValue among_failures(const Json& lane, const ComparedMetric& metric, size_t n, size_t failed) {
  const size_t all = n + failed;
  const bool small = all < stats::sample_floor(metric.percentile);
  if (small && metric.percentile != 500)
    return absent(std::to_string(all) + " requests are below the floor of " +
                  std::to_string(stats::sample_floor(metric.percentile)) + " for " +
                  metric.percentile_name);
  size_t rank = stats::nearest_rank(all, metric.percentile);
  if (metric.failure == Failure::kZeroRate) {
    if (rank <= failed) return {0.0, small, {}};
    rank -= failed;
  } else if (rank > n) {
    return absent("the " + metric.percentile_name + " of all requests is one that never answered");
  }
  const auto value = on_curve(member(member(lane, "curves"), metric.member),
                              static_cast<double>(rank) / static_cast<double>(n));
  if (!value)
    return absent(std::to_string(failed) + " of " + std::to_string(all) +
                  " requests failed, and the results hold no curve to find the percentile among "
                  "all of them");
  return {value, small, {}};
}
}  // namespace

Result<ComparedMetric> compared_metric(std::string_view name) {
  std::string_view wanted = name;
  const auto* percentile = std::begin(kPercentiles);
  for (const auto& known : kPercentiles) {
    const std::string suffix = "." + std::string(known.first);
    if (!wanted.ends_with(suffix)) continue;
    percentile = &known;
    wanted.remove_suffix(suffix.size());
    break;
  }
  const bool named = wanted.size() != name.size();
  for (const Known& known : kKnown) {
    if (wanted != known.member || (named && !known.distribution)) continue;
    ComparedMetric out{known.member, known.member, 0, "", known.unit, known.better, known.failure};
    if (known.distribution) {
      out.percentile = percentile->second;
      out.percentile_name = percentile->first;
      out.name += "." + out.percentile_name;
    }
    return out;
  }
  std::string list;
  for (const Known& known : kKnown) list += (list.empty() ? "" : ", ") + std::string(known.member);
  return fail(Kind::kInvalidInput, Side::kClient,
              "\"" + std::string(name) + "\" is no metric to compare by",
              "there are: " + list +
                  "; those ending in _ms and those of one request also take "
                  ".p50 (the default), .p90, .p95 or .p99");
}

std::vector<std::string> usual_metrics() {
  return {"ttfo_ms",
          "ttfv_ms",
          "e2e_ms",
          "tpot_ms",
          "decode_tok_s",
          "effective_prefill_tok_s",
          "aggregate_output_tok_s",
          "success_rate"};
}

RunValue value_of_successes(const Json& lane, const ComparedMetric& metric) {
  if (lane.is_null()) return absent("the run has no results of this lane");
  const Json& found = at_path(lane, metric.member);
  if (metric.percentile == 0) {
    if (!found.is_number()) return absent("not known in this run");
    return {found.get<double>(), false, {}};
  }
  if (const auto value = number(found, metric.percentile_name)) return {value, false, {}};
  const int64_t n = integer(found, "n").value_or(0);
  if (n <= 0) return absent("no request of this run has it");
  if (!member(member(found, "refused"), metric.percentile_name).is_null())
    return absent("refused: the client's own error is too large beside it");
  if (metric.percentile == 500)
    if (const auto value = number(found, "median_below_floor")) return {value, true, {}};
  return absent(std::to_string(n) + " values are below the floor of " +
                std::to_string(stats::sample_floor(metric.percentile)) + " for " +
                metric.percentile_name);
}

RunValue value_of_all(const Json& lane, const ComparedMetric& metric) {
  if (lane.is_null()) return absent("the run has no results of this lane");
  if (metric.failure == Failure::kUndefined)
    return absent("a failed request has no value of this kind");
  const int64_t failed = integer(member(lane, "requests"), "failed").value_or(0);
  if (failed <= 0 || metric.failure == Failure::kCounted) return value_of_successes(lane, metric);
  if (metric.failure == Failure::kNoOutput) {
    const auto tokens = number(member(lane, "tokens"), "completion");
    const auto wall = number(lane, "wall_s");
    if (!wall || *wall <= 0)
      return absent(std::to_string(failed) +
                    " requests failed, and the results do not hold the wall time of all requests");
    // No answer at all is a rate of 0, which is what its users got.
    return {tokens.value_or(0) / *wall, false, {}};
  }
  const int64_t n = integer(member(lane, metric.member), "n").value_or(0);
  if (n <= 0) {
    if (metric.failure == Failure::kZeroRate) return {0.0, false, {}};
    return absent("no request of this run answered");
  }
  return among_failures(lane, metric, static_cast<size_t>(n), static_cast<size_t>(failed));
}

const Json& lane_of(const Json& results, std::string_view id) {
  for (const Json& lane : elements(member(results, "lanes")))
    if (text(lane, "id") == id) return lane;
  return member(Json(), "");
}

Json pooled_curve(const std::vector<WeightedCurve>& curves) {
  struct Step {
    double value, mass;
  };
  std::vector<Step> steps;
  double all = 0;
  for (const WeightedCurve& curve : curves) {
    double below = 0;
    for (const Json& point : elements(*curve.points)) {
      if (!point.is_array() || point.size() != 2 || !point[0].is_number() || !point[1].is_number())
        continue;
      const double share = point[0].get<double>();
      if (!(share > below) || share > 1) continue;
      steps.push_back({point[1].get<double>(), (share - below) * curve.weight});
      below = share;
    }
    all += below * curve.weight;
  }
  if (steps.empty() || !(all > 0)) return nullptr;
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.value < b.value; });
  std::vector<std::pair<double, double>> points;
  double mass = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    mass += steps[i].mass;
    const bool last_of_value = i + 1 == steps.size() || steps[i + 1].value != steps[i].value;
    if (last_of_value) points.emplace_back(std::min(1.0, mass / all), steps[i].value);
  }
  points.back().first = 1;
  // Points are thinned evenly from the top, where the tail is.
  Json out = Json::array();
  const size_t step = (points.size() + kMostPoints - 1) / kMostPoints;
  for (size_t i = 0; i < points.size(); ++i)
    if ((points.size() - 1 - i) % step == 0) out.push_back({points[i].first, points[i].second});
  return out;
}

}  // namespace anvil::evidence
