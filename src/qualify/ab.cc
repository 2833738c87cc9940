#include "qualify/ab.h"

#include <algorithm>

#include "base/files.h"
#include "evidence/run_reader.h"
#include "stats/random.h"

namespace anvil::qualify {

namespace {

Json arm_of(const Inputs& inputs) {
  return {{"recipe", inputs.recipe.name()},
          {"digest", inputs.recipe.digest()},
          {"runner", inputs.recipe.text("launch.runner")}};
}

Json plan_of(const AbPlan& plan) {
  return {{"primary", {{"lane", plan.primary_lane}, {"metric", plan.primary_metric}}},
          {"margin", plan.margin},
          {"seed", plan.seed},
          {"order", arm_order(plan)},
          {"pairs", plan.pairs},
          {"stop", plan.until_width ? Json{{"until_width", *plan.until_width},
                                           {"not_before_pairs", kFewestPairs}}
                                    : Json{{"pairs", plan.pairs}}},
          {"exploratory", plan.exploratory}};
}

// Shows which run of how many a message belongs to.
class ArmObserver : public Observer {
 public:
  ArmObserver(Observer& inner, std::string prefix) : inner_(inner), prefix_(std::move(prefix)) {}
  void run_created(const std::string& directory) override { inner_.run_created(directory); }
  void step_begin(std::string_view step) override { inner_.step_begin(step); }
  void progress(std::string_view step, int64_t done, int64_t total,
                std::string_view what) override {
    inner_.progress(step, done, total, prefix_ + std::string(what));
  }
  void step_end(std::string_view step, bool ok, std::string_view summary) override {
    // Of the steps of a run people want to see what was measured and what went wrong.
    if (!ok || step == "lanes") inner_.step_end(step, ok, prefix_ + std::string(summary));
  }

 private:
  Observer& inner_;
  std::string prefix_;
};

// Why a run may not enter the effect; "" if it may.
std::string exclusion(const Outcome& outcome) {
  if (!outcome.failed_step.empty())
    return "step " + outcome.failed_step + " failed" +
           (outcome.failure ? ": " + outcome.failure->detail : "");
  const auto reader = evidence::RunReader::open(outcome.run_dir);
  const auto results = reader ? reader->document("results.json") : fail(reader.error());
  if (!results) return "no results: " + base::to_string(results.error());
  for (const Json& lane : results->value("lanes", Json::array()))
    for (const Json& reason : lane["client"]["invalid_reasons"])
      return "lane " + lane["id"].get<std::string>() + ": " + reason.get<std::string>();
  return "";
}

// The width of the primary interval as a share of the effect; nothing while there is none.
std::optional<double> primary_width(const Json& comparison) {
  for (const Json& lane : comparison["lanes"])
    for (const Json& metric : lane["metrics"]) {
      if (metric["primary"] != true || !metric["interval"].is_object()) continue;
      const double ratio = metric["ratio"].get<double>();
      const Json& interval = metric["interval"];
      return (interval["high"].get<double>() - interval["low"].get<double>()) / ratio;
    }
  return std::nullopt;
}

}  // namespace

std::string arm_order(const AbPlan& plan) {
  std::string order;
  stats::Random random(plan.seed);
  for (int pair = 0; pair < plan.pairs; ++pair) {
    const bool turned = plan.random_order ? random.below(2) == 1 : pair % 2 == 1;
    order += turned ? "ba" : "ab";
  }
  return order;
}

Result<AbOutcome> run_ab(const Inputs& a, const Inputs& b, const AbPlan& plan, const Json& diff,
                         const std::string& runs_dir, const evidence::RenderCampaign& render,
                         Observer& observer, const base::Cancel& cancel) {
  const Json frozen = {{"kind", "ab"},
                       {"a", arm_of(a)},
                       {"b", arm_of(b)},
                       {"diff", diff},
                       {"suite", {{"name", a.suite.name}, {"digest", a.suite.digest}}},
                       {"policy", {{"name", a.policy.name}, {"digest", a.policy.digest}}},
                       {"plan", plan_of(plan)}};
  auto writer = TRY(evidence::CampaignWriter::create(
      runs_dir, "ab-" + a.recipe.name() + "-vs-" + b.recipe.name(), frozen));
  AbOutcome outcome;
  outcome.id = writer->id();
  outcome.directory = writer->directory();
  observer.run_created(outcome.directory);

  const std::string order = arm_order(plan);
  for (size_t i = 0; i < order.size() && !cancel.requested(); ++i) {
    const bool is_a = order[i] == 'a';
    const int pair = static_cast<int>(i / 2);
    Inputs inputs = is_a ? a : b;
    inputs.measure_only = true;
    inputs.runs_dir = writer->runs_folder();
    ArmObserver arm(observer, "run " + std::to_string(i + 1) + " of " +
                                  std::to_string(order.size()) + " (" + (is_a ? "A" : "B") + "): ");
    const auto run = qualify(inputs, arm, cancel);
    std::string why = run ? exclusion(*run) : base::to_string(run.error());
    if (why.empty() && cancel.requested()) why = "stopped by a person";
    TRY(writer->add_run({{"index", i},
                         {"arm", is_a ? "a" : "b"},
                         {"pair", pair},
                         {"run", run ? Json(run->run) : Json(nullptr)},
                         {"excluded", why.empty() ? Json(nullptr) : Json(why)}}));
    ++outcome.runs;
    outcome.excluded += !why.empty();
    // Looked at only where the declared rule says so.
    if (plan.until_width && i % 2 == 1 && pair + 1 >= kFewestPairs) {
      const auto so_far =
          TRY(evidence::derive_comparison(TRY(evidence::read_campaign(writer->directory()))));
      if (const auto width = primary_width(so_far); width && *width <= *plan.until_width) break;
    }
  }
  outcome.cancelled = cancel.requested();

  const auto campaign = TRY(evidence::read_campaign(writer->directory()));
  outcome.comparison = TRY(evidence::derive_comparison(campaign));
  TRY(writer->write_document("comparison.json", outcome.comparison));
  if (render) TRY(writer->write_text("report.html", TRY(render(campaign, outcome.comparison))));
  TRY(writer->finish(
      {{"cancelled", outcome.cancelled}, {"runs", outcome.runs}, {"excluded", outcome.excluded}}));
  return outcome;
}

}  // namespace anvil::qualify
