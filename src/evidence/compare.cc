#include "evidence/compare.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "evidence/compare_metric.h"
#include "evidence/compare_values.h"
#include "evidence/json_access.h"
#include "stats/bootstrap.h"
#include "stats/decision.h"

namespace anvil::evidence {

namespace {
constexpr double kLargestCount = 9e15;  // every whole number below is exact

struct Wanted {
  std::vector<ComparedMetric> metrics;
  std::string primary_lane, primary_metric;  // "" without a primary endpoint
};

Result<Wanted> wanted_of(const Json& plan) {
  Wanted out;
  std::vector<std::string> names;
  for (const Json& name : elements(member(plan, "metrics")))
    if (name.is_string()) names.push_back(name.get<std::string>());
  if (names.empty()) names = usual_metrics();
  const Json& primary = member(plan, "primary");
  if (const std::string name = text(primary, "metric"); !name.empty()) {
    out.primary_lane = text(primary, "lane");
    out.primary_metric = TRY(compared_metric(name)).name;
    names.insert(names.begin(), name);
  }
  for (const std::string& name : names) {
    ComparedMetric metric = TRY(compared_metric(name));
    const bool known = std::any_of(out.metrics.begin(), out.metrics.end(),
                                   [&](const ComparedMetric& m) { return m.name == metric.name; });
    if (!known) out.metrics.push_back(std::move(metric));
  }
  return out;
}

Result<ComparisonRules> rules_of(const Json& plan) {
  ComparisonRules out;
  out.seed = static_cast<uint64_t>(integer(plan, "seed").value_or(0));
  out.margin = number(plan, "margin");
  if (out.margin && !(*out.margin > 0))
    return fail(Kind::kInvalidInput, Side::kClient, "the margin of equivalence is not above 0",
                "write the share that would not matter, such as 0.05, or leave it out");
  return out;
}

std::vector<std::string> lane_ids(const std::vector<RunForComparison>& runs) {
  std::vector<std::string> out;
  for (const RunForComparison& run : runs)
    for (const Json& lane : elements(member(run.results, "lanes")))
      if (const std::string id = text(lane, "id");
          !id.empty() && std::find(out.begin(), out.end(), id) == out.end())
        out.push_back(id);
  return out;
}

// Adds up the counts that the runs report; null if none does.
class Counts {
 public:
  explicit Counts(std::vector<std::string> names) : names_(std::move(names)) {}
  void add(const Json& object) {
    for (const std::string& name : names_) {
      // Differences of an engine's counters are whole numbers written as floating-point ones.
      const auto value = number(object, name);
      if (!value || !(std::abs(*value) < kLargestCount)) continue;
      int64_t sum = 0;
      if (!__builtin_add_overflow(sums_[name].value_or(0), static_cast<int64_t>(*value), &sum))
        sums_[name] = sum;
    }
  }
  std::optional<int64_t> of(const std::string& name) const {
    const auto found = sums_.find(name);
    return found == sums_.end() ? std::nullopt : found->second;
  }
  Json document() const {
    Json out = Json::object();
    for (const std::string& name : names_) out[name] = or_null(of(name));
    return out;
  }

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::optional<int64_t>> sums_;
};

std::optional<double> share(std::optional<int64_t> part, std::optional<int64_t> whole) {
  if (!part || !whole || *whole <= 0) return std::nullopt;
  return static_cast<double>(*part) / static_cast<double>(*whole);
}

// What the runs of one arm that count did in this lane.
Json summarise(const std::string& arm, const std::string& lane,
               const std::vector<RunForComparison>& runs) {
  size_t counted = 0;
  Counts requests({"total", "ok", "failed", "refused"});
  Counts tokens({"prompt", "completion", "cached", "reasoning"});
  Counts row_speculation({"drafted", "accepted"});
  Counts counters({"drafts", "draft_tokens", "accepted_tokens"});
  std::map<std::string, std::vector<WeightedCurve>> curves;
  for (const RunForComparison& run : runs) {
    if (run.arm != arm || run.excluded) continue;
    ++counted;
    const Json& found = lane_of(run.results, lane);
    requests.add(member(found, "requests"));
    tokens.add(member(found, "tokens"));
    row_speculation.add(member(found, "speculation"));
    counters.add(member(found, "counters"));
    const Json& of_lane = member(found, "curves");
    if (!of_lane.is_object()) continue;
    for (const auto& [name, points] : of_lane.items())
      if (const auto n = integer(member(found, name), "n"); n && *n > 0)
        curves[name].push_back({&points, static_cast<double>(*n)});
  }
  // The engine's counters see every draft; rows only those of engines that report them per answer.
  const bool by_engine = counters.of("draft_tokens").value_or(0) > 0;
  const auto drafted = by_engine ? counters.of("draft_tokens") : row_speculation.of("drafted");
  const auto accepted = by_engine ? counters.of("accepted_tokens") : row_speculation.of("accepted");
  Json speculation = nullptr;
  if (drafted.value_or(0) > 0) {
    const auto per_draft = share(counters.of("accepted_tokens"), counters.of("drafts"));
    speculation = {{"drafted", *drafted},
                   {"accepted", or_null(accepted)},
                   {"acceptance", or_null(share(accepted, drafted))},
                   {"mean_acceptance_length", per_draft ? Json(1 + *per_draft) : Json(nullptr)},
                   {"source", by_engine ? "engine counters" : "answers"}};
  }
  std::optional<double> success;
  const auto total = requests.of("total"), failed = requests.of("failed");
  if (total && failed) success = share(*total - *failed, total);
  Json pooled = Json::object();
  for (const auto& [name, each] : curves) pooled[name] = pooled_curve(each);
  return Json{{"runs", counted},
              {"requests", requests.document()},
              {"success_rate", or_null(success)},
              {"tokens", tokens.document()},
              {"speculation", speculation},
              {"curves", pooled}};
}

// Adjusts the p values of everything but the primary endpoint, as one family.
Result<void> adjust(Json& lanes) {
  std::vector<double> p;
  std::vector<Json*> family;
  for (Json& lane : lanes)
    for (Json& metric : lane["metrics"]) {
      metric["p_holm"] = nullptr;
      metric["holm_rejects"] = nullptr;
      if (metric["primary"].get<bool>() || metric["signed_rank"].is_null()) continue;
      p.push_back(metric["signed_rank"]["p"].get<double>());
      family.push_back(&metric);
    }
  const std::vector<double> adjusted = TRY(stats::holm(p));
  for (size_t i = 0; i < family.size(); ++i) {
    (*family[i])["p_holm"] = adjusted[i];
    (*family[i])["holm_rejects"] = adjusted[i] <= 0.05;
  }
  return {};
}

Json describe(const RunForComparison& run) {
  return Json{{"index", run.index},
              {"arm", run.arm},
              {"pair", run.pair},
              {"run", run.run},
              {"excluded", or_null(run.excluded)}};
}
}  // namespace

Result<Json> compare(const Json& plan, const std::vector<RunForComparison>& given) {
  std::vector<RunForComparison> runs = given;
  std::stable_sort(runs.begin(), runs.end(),
                   [](const auto& left, const auto& right) { return left.index < right.index; });
  for (const RunForComparison& run : runs)
    if (run.arm != "a" && run.arm != "b")
      return fail(Kind::kInvalidInput, Side::kClient,
                  "run " + run.run + " belongs to arm \"" + run.arm + "\"; there are a and b");
  const Wanted wanted = TRY(wanted_of(plan));
  const ComparisonRules rules = TRY(rules_of(plan));

  Json lanes = Json::array();
  for (const std::string& id : lane_ids(runs)) {
    Json metrics = Json::array();
    for (const ComparedMetric& metric : wanted.metrics) {
      Json entry = TRY(compare_metric(metric, id, runs, rules));
      entry["primary"] = id == wanted.primary_lane && metric.name == wanted.primary_metric;
      metrics.push_back(std::move(entry));
    }
    lanes.push_back({{"id", id},
                     {"arms", {{"a", summarise("a", id, runs)}, {"b", summarise("b", id, runs)}}},
                     {"metrics", std::move(metrics)}});
  }
  TRY(adjust(lanes));

  Json listed = Json::array(), excluded = Json::array();
  for (const RunForComparison& run : runs) {
    listed.push_back(describe(run));
    if (run.excluded) excluded.push_back(describe(run));
  }
  const PairCount pairs = count_pairs(runs);
  const std::string because = distrust(pairs.complete);
  Json primary = nullptr;
  if (!wanted.primary_metric.empty())
    primary = {{"lane", wanted.primary_lane}, {"metric", wanted.primary_metric}};
  return Json{{"schema", "anvil/comparison/v1"},
              {"primary", primary},
              {"margin", or_null(rules.margin)},
              {"seed", rules.seed},
              {"level", rules.level},
              {"resamples", stats::kFewestResamples},
              {"order", member(plan, "order")},
              {"stop", member(plan, "stop")},
              {"exploratory", flag(plan, "exploratory")},
              {"pairs",
               {{"complete", pairs.complete},
                {"incomplete", pairs.incomplete},
                {"trusted", because.empty()},
                {"because", because.empty() ? Json(nullptr) : Json(because)}}},
              {"runs", std::move(listed)},
              {"excluded", std::move(excluded)},
              {"lanes", std::move(lanes)}};
}

}  // namespace anvil::evidence
