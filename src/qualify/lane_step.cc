#include "qualify/lane_step.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/counters.h"
#include "evidence/knee.h"
#include "evidence/lane_load.h"
#include "evidence/row_metrics.h"
#include "measure/load_report.h"
#include "measure/plan.h"
#include "qualify/token_counter.h"
#include "wire/chat_request.h"

namespace anvil::qualify {

namespace {

// Tokens of English filler by its words, where nothing counts them.
int64_t estimated_tokens(const std::string& text) {
  const auto words = std::count(text.begin(), text.end(), ' ') + 1;
  return static_cast<int64_t>(std::llround(static_cast<double>(words) * 1.35));
}

// The engine's counters now; why not, where they cannot be read.
Json counters_now(const CheckContext& context, std::string& why_not) {
  auto read =
      engine::read_counters(context.table, context.endpoint.base_url, context.endpoint.api_key);
  if (read) return read->values;
  why_not = base::to_string(read.error());
  return nullptr;
}

// Runs the lanes of one suite, one after the other.
class LaneStep {
 public:
  LaneStep(const CheckContext& context, const LaneObserver& observer)
      : context_(context), observer_(observer) {}

  Result<LaneReport> run(const std::vector<measure::LanePlan>& plans) {
    // What a duration, steps, a trace or a search give is known once its plan is made.
    for (const auto& plan : plans) total_ += plan.requests + plan.warmup;
    for (const auto& plan : plans) {
      total_ -= plan.requests + plan.warmup;
      if (plan.find_knee)
        TRY(search(plan));
      else
        TRY(run_lane(plan, {{"id", plan.id}}));
    }
    return report_;
  }

 private:
  // Everything of one lane; `entry` is what load.json says of it beforehand. Returns {"goodput",
  // "valid"}: what the requests made of the lane's objectives, and whether our client kept up.
  Result<Json> run_lane(const measure::LanePlan& plan, Json entry) {
    if (context_.cancel.requested()) return fail(base::cancelled_error());
    measure::LaneContext lane;
    lane.model = context_.model;
    lane.seed = static_cast<uint64_t>(context_.seed);
    lane.salt = context_.salt;
    lane.effort = context_.effort;
    lane.extra = context_.table.document().value("measured_request", Json(nullptr));
    lane.cold_extra = context_.table.document().value("cold_request", Json(nullptr));
    const auto exact = token_counter(context_, plan.api, [&](const std::string& text) {
      return measure::lane_body(plan, lane, text);
    });
    bool estimated = false;
    measure::PromptBuilder prompts([&](const std::string& text) -> Result<int64_t> {
      if (context_.cancel.requested()) return fail(base::cancelled_error());
      if (estimated) return estimated_tokens(text);
      auto counted = exact(text);
      if (counted || !context_.estimates || counted.error().kind != Kind::kUnsupported)
        return counted;
      estimated = true;
      return estimated_tokens(text);
    });
    observer_.progress(done_, total_, plan.id + ": making the plan");
    auto attempts = TRY(measure::build_lane(plan, lane, prompts, [&](int made) {
      observer_.progress(done_, total_, plan.id + ": " + std::to_string(made) + " prompts made");
    }));
    total_ += static_cast<int64_t>(attempts.unmeasured.size() + attempts.measured.size());
    TRY(send(plan, std::move(attempts.unmeasured), {}, nullptr, nullptr));

    std::string why_not;
    const Json before = counters_now(context_, why_not);
    measure::LoadReport load;
    evidence::LaneLoad objectives(plan.open_loop());
    const auto outcomes = TRY(
        send(plan, std::move(attempts.measured), measure::load_options(plan), &load, &objectives));
    const Json after = counters_now(context_, why_not);
    entry.update({{"plan_digest", attempts.plan_digest},
                  {"plan", attempts.summary},
                  {"prompt_tokens_estimated", estimated},
                  {"client", load.to_json()},
                  {"counters",
                   {{"before", before},
                    {"after", after},
                    {"error", why_not.empty() ? Json(nullptr) : Json(why_not)}}}});
    const Json judged = {{"client", entry["client"]}};
    TRY(observer_.lane_done(std::move(entry)));

    ++report_.lanes;
    bool unreachable = !outcomes.empty();
    for (const auto outcome : outcomes) {
      ++report_.requests;
      report_.ok += outcome == evidence::Outcome::kOk;
      unreachable = unreachable && outcome == evidence::Outcome::kConnectFailed;
    }
    if (context_.cancel.requested()) return fail(base::cancelled_error());
    if (unreachable)
      return fail(Kind::kEngineExited, Side::kEngine,
                  "nobody answers at " + context_.endpoint.base_url + " in lane " + plan.id,
                  "see the end of engine.log");
    Json declared = Json::object();
    for (const auto& objective : plan.objectives) declared[objective.name] = objective.limit;
    return Json{{"goodput", objectives.goodput({{"objectives", declared}})},
                {"valid", objectives.judge_client(judged, nullptr)["valid"]}};
  }

  // Probes one rate after the other, each as a lane "ID@RATE" of its own.
  Result<void> search(const measure::LanePlan& plan) {
    auto knee = TRY(evidence::KneeSearch::make(
        evidence::knee_options({{"rate", plan.rate}, {"requests", plan.requests}})));
    int number = 0;
    while (const auto probe = knee.next()) {
      measure::LanePlan at = plan;
      char rate[64];
      std::snprintf(rate, sizeof rate, "%.4g", probe->rate);
      at.id = plan.id + "@" + rate + "#" + std::to_string(++number);
      at.rate = probe->rate;
      at.requests = static_cast<int>(probe->requests);
      if (number > 1) at.warmup = 0;
      const Json outcome =
          TRY(run_lane(at, {{"id", at.id}, {"of", plan.id}, {"rate", probe->rate}}));
      // Where our own client gives way, nothing more can be learnt about the engine.
      if (outcome["valid"] != true) return {};
      TRY(knee.add(probe->rate, evidence::objective_counts(outcome["goodput"])));
    }
    return {};
  }

  // Sends the attempts, records every row, and reports each one. Rows are recorded as they finish,
  // so that a crash keeps all that had ended.
  Result<std::vector<evidence::Outcome>> send(const measure::LanePlan& plan,
                                              std::vector<measure::Attempt> attempts,
                                              const measure::LoadOptions& options,
                                              measure::LoadReport* report,
                                              evidence::LaneLoad* objectives) {
    std::vector<evidence::Outcome> outcomes;
    std::optional<Error> problem;
    context_.client.run(
        std::move(attempts), options, context_.cancel,
        [&](const evidence::RequestRow& row) {
          outcomes.push_back(row.outcome);
          if (auto recorded = context_.record(row); !recorded && !problem)
            problem = recorded.error();
          if (objectives)
            objectives->add(row, evidence::measure(row), row.outcome == evidence::Outcome::kOk);
          observer_.progress(++done_, total_, plan.id);
        },
        report);
    if (problem) return fail(*problem);
    return outcomes;
  }

  const CheckContext& context_;
  const LaneObserver& observer_;
  LaneReport report_;
  int64_t done_ = 0, total_ = 0;
};

}  // namespace

Result<LaneReport> run_lanes(const CheckContext& context, const Json& suite,
                             const LaneObserver& observer) {
  std::vector<measure::LanePlan> plans;
  for (const auto& lane : suite.value("lane", Json::array()))
    plans.push_back(TRY(measure::lane_plan(lane)));
  return LaneStep(context, observer).run(plans);
}

}  // namespace anvil::qualify
