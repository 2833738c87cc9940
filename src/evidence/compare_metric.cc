#include "evidence/compare_metric.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "evidence/json_access.h"
#include "stats/bootstrap.h"
#include "stats/decision.h"
#include "stats/distance.h"
#include "stats/percentile.h"
#include "stats/portable_math.h"
#include "stats/rank_tests.h"

namespace anvil::evidence {

namespace {
constexpr double kAlpha = 0.05;

struct Point {
  const RunForComparison* run;
  RunValue value;
};
using Points = std::vector<Point>;

Points points_of(const std::vector<RunForComparison>& runs, const std::string& lane,
                 const ComparedMetric& metric,
                 RunValue (*value)(const Json&, const ComparedMetric&)) {
  Points out;
  for (const RunForComparison& run : runs)
    out.push_back({&run, value(lane_of(run.results, lane), metric)});
  return out;
}

// The run-level values that count, by arm and by pair.
struct Sample {
  std::vector<double> a, b;  // in the order of the campaign
  std::vector<stats::Block> blocks;
  std::vector<double> differences, log_ratios;  // of complete pairs, b against a
  bool positive = true;                         // else nothing has a ratio

  Sample(const Points& points, bool with_excluded) {
    std::map<int64_t, stats::Block> pairs;
    for (const Point& point : points) {
      if (!point.value.value || (point.run->excluded && !with_excluded)) continue;
      const double value = *point.value.value;
      positive = positive && value > 0;
      stats::Block& pair = pairs[point.run->pair];
      const bool first = point.run->arm == "a";
      (first ? a : b).push_back(value);
      (first ? pair.a : pair.b).push_back(value);
    }
    for (const auto& [number, pair] : pairs) {
      blocks.push_back(pair);
      const auto from = stats::median(pair.a), to = stats::median(pair.b);
      if (!from || !to) continue;
      differences.push_back(*to - *from);
      if (positive) log_ratios.push_back(stats::log(*to / *from));
    }
    if (!positive) log_ratios.clear();
  }

  size_t complete() const { return differences.size(); }
  bool has_ratio() const { return positive && !a.empty() && !b.empty(); }

  // Each run of an arm against the one before it: the same thing, measured twice.
  std::vector<double> control_ratios() const {
    std::vector<double> out;
    for (const auto* arm : {&a, &b})
      for (size_t i = 1; i < arm->size(); ++i) out.push_back((*arm)[i] / (*arm)[i - 1]);
    return out;
  }
};

Json interval_json(const std::optional<stats::Interval>& interval) {
  if (!interval) return nullptr;
  return Json{{"low", interval->low}, {"high", interval->high}, {"level", interval->level}};
}

// {"medians","ratio","percent","interval","interval_because"} and the resamples behind them.
struct Effect {
  std::optional<stats::RatioOfMedians> ratio;
  std::optional<stats::Interval> interval;
  Json document;
};

Result<Effect> effect_of(const Sample& sample, const ComparisonRules& rules) {
  Effect out;
  std::string because;
  if (sample.has_ratio()) {
    out.ratio =
        TRY(stats::ratio_of_medians(sample.blocks, {.seed = rules.seed, .level = rules.level}));
    because = distrust(sample.complete());
    if (sample.complete() >= kFewestPairs) out.interval = out.ratio->interval(rules.level);
  } else if (!sample.positive) {
    because = "a value of 0 or less has no ratio";
  } else {
    because = "no run of arm " + std::string(sample.a.empty() ? "a" : "b") + " has a value";
  }
  Json interval = interval_json(out.interval);
  if (out.interval) interval["trusted"] = sample.complete() >= kTrustedPairs;
  out.document = {
      {"medians",
       {{"a", or_null(stats::median(sample.a))}, {"b", or_null(stats::median(sample.b))}}},
      {"ratio", out.ratio ? Json(out.ratio->ratio) : Json(nullptr)},
      {"percent", out.ratio ? Json((out.ratio->ratio - 1) * 100) : Json(nullptr)},
      {"interval", interval},
      {"interval_because", because.empty() ? Json(nullptr) : Json(because)}};
  return out;
}

Json values_json(const Points& points) {
  Json out{{"a", Json::array()}, {"b", Json::array()}};
  for (const Point& point : points)
    out[point.run->arm].push_back(
        {{"index", point.run->index},
         {"pair", point.run->pair},
         {"run", point.run->run},
         {"excluded", point.run->excluded.has_value()},
         {"value", or_null(point.value.value)},
         {"below_floor", point.value.below_floor},
         {"because", point.value.because.empty() ? Json(nullptr) : Json(point.value.because)}});
  return out;
}

std::string fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

const char* direction(const ComparedMetric& metric, bool larger) {
  switch (metric.better) {
    case ComparedMetric::Better::kLower:
      return larger ? "slower" : "faster";
    case ComparedMetric::Better::kHigher:
      return larger ? "faster" : "slower";
    case ComparedMetric::Better::kNeither:
      break;
  }
  return larger ? "higher" : "lower";
}

struct Verdict {
  std::string verdict = "not resolved";
  std::string reason;
};

Verdict judge(const ComparedMetric& metric, const Sample& sample, const Effect& effect,
              const std::optional<stats::NoiseFloor>& noise,
              const std::optional<stats::Equivalence>& equivalence,
              const std::optional<stats::SignedRank>& rank, const Json& shift) {
  if (!effect.ratio) {
    // Without a ratio only the order of the pairs can speak.
    if (rank && rank->can_reject && rank->p_two_sided < kAlpha && shift.is_number() &&
        shift.get<double>() != 0)
      return {direction(metric, shift.get<double>() > 0),
              "there is no ratio; the signed-rank test rejects (p " + fixed(rank->p_two_sided, 4) +
                  ")"};
    return {"not resolved", effect.document["interval_because"].get<std::string>()};
  }
  if (!effect.interval) return {"not resolved", distrust(sample.complete())};
  const bool trusted = sample.complete() >= kTrustedPairs;
  if (trusted && equivalence && equivalence->equivalent)
    return {"equivalent", "the 90 % interval lies inside the declared margin (" +
                              fixed(equivalence->low, 3) + " to " + fixed(equivalence->high, 3) +
                              ")"};
  const double ratio = effect.ratio->ratio;
  if (!noise) return {"not resolved", "there is no noise floor: an arm needs 2 runs"};
  if (std::max(ratio, 1 / ratio) <= noise->floor)
    return {"not resolved", "a factor of " + fixed(std::max(ratio, 1 / ratio), 3) +
                                " is inside the noise floor of " + fixed(noise->floor, 3)};
  if (effect.interval->low <= 1 && effect.interval->high >= 1)
    return {"not resolved", "the interval from " + fixed(effect.interval->low, 3) + " to " +
                                fixed(effect.interval->high, 3) + " spans 1"};
  std::string reason = "the interval excludes 1 and the ratio is beyond the noise floor of " +
                       fixed(noise->floor, 3);
  if (!trusted) reason += "; " + distrust(sample.complete());
  return {direction(metric, ratio > 1), reason};
}

// {"p","w_plus","w_minus","pairs","zeros"} or null.
Json rank_json(const std::optional<stats::SignedRank>& rank) {
  if (!rank || !rank->can_reject) return nullptr;
  return Json{{"p", rank->p_two_sided},
              {"w_plus", rank->w_plus},
              {"w_minus", rank->w_minus},
              {"pairs", rank->pairs},
              {"zeros", rank->zeros}};
}

std::string rank_because(const std::optional<stats::SignedRank>& rank, size_t complete) {
  if (rank && rank->can_reject) return "";
  if (!rank) return std::to_string(complete) + " complete pairs";
  return std::to_string(rank->pairs - rank->zeros) +
         " pairs that differ: below 6 the signed-rank test cannot reject at 0.05, whatever they "
         "say";
}
}  // namespace

std::string distrust(size_t complete_pairs) {
  if (complete_pairs >= kTrustedPairs) return "";
  const std::string pairs =
      std::to_string(complete_pairs) + (complete_pairs == 1 ? " complete pair" : " complete pairs");
  if (complete_pairs < kFewestPairs)
    return pairs + ": no interval can be trusted; 3 give one, 6 one that reaches 95 %";
  const double covered = 100 * (1 - stats::power(0.5, complete_pairs - 1));
  return pairs + ": even their whole range covers a median in only " + fixed(covered, 1) +
         " % of campaigns; 95 % needs 6 pairs";
}

PairCount count_pairs(const std::vector<RunForComparison>& runs) {
  std::map<int64_t, std::pair<bool, bool>> pairs;
  for (const RunForComparison& run : runs) {
    auto& [a, b] = pairs[run.pair];
    if (!run.excluded) (run.arm == "a" ? a : b) = true;
  }
  PairCount out;
  for (const auto& [number, both] : pairs)
    ++(both.first && both.second ? out.complete : out.incomplete);
  return out;
}

Result<Json> compare_metric(const ComparedMetric& metric, const std::string& lane,
                            const std::vector<RunForComparison>& runs,
                            const ComparisonRules& rules) {
  const Points points = points_of(runs, lane, metric, value_of_successes);
  const Sample sample(points, false);
  const Effect effect = TRY(effect_of(sample, rules));
  const size_t complete = sample.complete();

  Json shift = nullptr, a12 = nullptr;
  if (complete) shift = TRY(stats::hodges_lehmann(sample.differences));
  if (!sample.a.empty() && !sample.b.empty()) a12 = TRY(stats::a12(sample.b, sample.a));
  std::optional<stats::SignedRank> rank;
  if (complete)
    rank = TRY(stats::wilcoxon_signed_rank(sample.positive ? sample.log_ratios : sample.differences,
                                           kAlpha));

  std::optional<stats::NoiseFloor> noise;
  if (sample.has_ratio() && sample.a.size() >= 2 && sample.b.size() >= 2)
    noise = TRY(stats::noise_floor(sample.control_ratios(), complete, rules.level));
  std::optional<stats::Equivalence> equivalence;
  Json equivalence_json = nullptr;
  if (rules.margin && effect.interval) {
    const stats::Interval narrow = *effect.ratio->interval(1 - 2 * kAlpha);
    equivalence = TRY(stats::tost(narrow, *rules.margin));
    equivalence_json = {{"margin", *rules.margin},
                        {"low", equivalence->low},
                        {"high", equivalence->high},
                        {"interval", interval_json(narrow)},
                        {"equivalent", equivalence->equivalent && complete >= kTrustedPairs}};
  }
  const auto sd = stats::standard_deviation(sample.log_ratios);
  std::optional<double> detectable;
  if (sd) detectable = stats::minimum_detectable_ratio(*sd, sample.log_ratios.size(), kAlpha);
  const Verdict verdict = judge(metric, sample, effect, noise, equivalence, rank, shift);

  Json out = effect.document;
  out.update(
      Json{{"metric", metric.name},
           {"unit", metric.unit},
           {"direction", metric.better == ComparedMetric::Better::kLower    ? "lower is better"
                         : metric.better == ComparedMetric::Better::kHigher ? "higher is better"
                                                                            : "neither"},
           {"values", values_json(points)},
           {"pairs", complete},
           {"shift", shift},
           {"signed_rank", rank_json(rank)},
           {"a12", a12},
           {"equivalence", equivalence_json},
           {"sd_log_ratio", or_null(sd)},
           {"minimum_detectable_ratio", or_null(detectable)},
           {"verdict", verdict.verdict},
           {"verdict_because", verdict.reason}});
  const std::string no_rank = rank_because(rank, complete);
  out["signed_rank_because"] = no_rank.empty() ? Json(nullptr) : Json(no_rank);
  out["noise_floor"] = nullptr;
  if (noise)
    out["noise_floor"] = {{"ratios", noise->ratios},
                          {"typical", noise->typical},
                          {"largest", noise->largest},
                          {"floor", noise->floor}};

  const Points all = points_of(runs, lane, metric, value_of_all);
  const bool same = std::equal(
      points.begin(), points.end(), all.begin(),
      [](const Point& one, const Point& other) { return one.value.value == other.value.value; });
  Json treated = same ? effect.document : TRY(effect_of(Sample(all, false), rules)).document;
  treated["values"] = values_json(all);
  out["intention_to_treat"] = treated;

  out["with_excluded"] = nullptr;
  const bool any = std::any_of(points.begin(), points.end(), [](const Point& point) {
    return point.run->excluded && point.value.value;
  });
  if (any) out["with_excluded"] = TRY(effect_of(Sample(points, true), rules)).document;
  return out;
}

}  // namespace anvil::evidence
