#include "qualify/lane_step.h"

#include "measure/lanes.h"
#include "qualify/token_counter.h"
#include "wire/chat_request.h"

namespace anvil::qualify {

namespace {

// Sends the attempts, records every row, and reports each one.
Result<std::vector<evidence::Outcome>> send(const CheckContext& context,
                                            std::vector<measure::Attempt> attempts, int concurrency,
                                            const std::function<void()>& finished) {
  // Rows are recorded as they finish, so that a crash keeps all that had ended.
  std::vector<evidence::Outcome> outcomes;
  std::optional<Error> problem;
  context.client.run(std::move(attempts), concurrency, context.cancel,
                     [&](const evidence::RequestRow& row) {
                       outcomes.push_back(row.outcome);
                       if (auto recorded = context.record(row); !recorded && !problem)
                         problem = recorded.error();
                       finished();
                     });
  if (problem) return fail(*problem);
  return outcomes;
}

}  // namespace

Result<LaneReport> run_lanes(
    const CheckContext& context, const Json& suite,
    const std::function<void(int64_t, int64_t, const std::string&)>& progress) {
  const Json& declared = suite.value("lane", Json::array());
  std::vector<measure::LanePlan> plans;
  int64_t total = 0;
  for (const auto& lane : declared) {
    plans.push_back(TRY(measure::lane_plan(lane)));
    total += plans.back().requests + plans.back().warmup + (plans.back().cache == "prefix" ? 1 : 0);
  }
  LaneReport report;
  int64_t done = 0;
  for (const auto& plan : plans) {
    if (context.cancel.requested()) return fail(base::cancelled_error());
    measure::LaneContext lane;
    lane.model = context.model;
    lane.seed = static_cast<uint64_t>(context.seed);
    lane.salt = context.salt;
    lane.effort = context.effort;
    lane.extra = context.table.document().value("measured_request", Json(nullptr));
    lane.cold_extra = context.table.document().value("cold_request", Json(nullptr));
    measure::PromptBuilder prompts(token_counter(context, plan.api, [&](const std::string& text) {
      return measure::lane_body(plan, lane, text);
    }));
    progress(done, total, plan.id + ": making exact prompts");
    auto attempts = TRY(measure::build_lane(plan, lane, prompts, [&](int made) {
      progress(done, total, plan.id + ": " + std::to_string(made) + " exact prompts made");
    }));
    const auto finished = [&] { progress(++done, total, plan.id); };
    TRY(send(context, std::move(attempts.unmeasured), 1, finished));
    const auto outcomes =
        TRY(send(context, std::move(attempts.measured), plan.concurrency, finished));
    ++report.lanes;
    int64_t ok = 0;
    bool unreachable = !outcomes.empty();
    for (const auto outcome : outcomes) {
      ++report.requests;
      ok += outcome == evidence::Outcome::kOk;
      unreachable = unreachable && outcome == evidence::Outcome::kConnectFailed;
    }
    report.ok += ok;
    if (context.cancel.requested()) return fail(base::cancelled_error());
    if (unreachable)
      return fail(Kind::kEngineExited, Side::kEngine,
                  "nobody answers at " + context.endpoint.base_url + " in lane " + plan.id,
                  "see the end of engine.log");
  }
  return report;
}

}  // namespace anvil::qualify
