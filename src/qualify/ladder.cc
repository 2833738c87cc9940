#include "qualify/ladder.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/strings.h"
#include "measure/prompts.h"
#include "qualify/checks_list.h"
#include "qualify/checks_send.h"
#include "qualify/token_counter.h"

namespace anvil::qualify {

namespace {

constexpr std::array<std::string_view, 8> kColours{"red",    "blue",   "green", "yellow",
                                                   "purple", "orange", "grey",  "white"};

struct Hidden {
  double depth = 0;
  std::string vault, code;
};

// One vault per depth; codes differ by rung, so that no rung can answer from an earlier one.
std::vector<Hidden> hidden_codes(const CheckContext& context, const LadderPlan& plan,
                                 int64_t target) {
  std::vector<Hidden> out;
  for (size_t i = 0; i < plan.depths.size(); ++i) {
    std::string vault(kColours[i % kColours.size()]);
    if (i >= kColours.size()) vault += " " + std::to_string(i / kColours.size() + 1);
    std::string code =
        code_word(context.seed, "ladder/" + std::to_string(target) + "/" + std::to_string(i));
    out.push_back({plan.depths[i], std::move(vault), std::move(code)});
  }
  return out;
}

std::string question(const std::vector<Hidden>& hidden, bool plain) {
  std::vector<std::string> vaults;
  for (const Hidden& one : hidden) vaults.push_back(one.vault);
  const std::string names = base::join(vaults, ", ");
  if (plain) return "\nQuestion: What are the access codes of the vaults " + names + "?\nAnswer:";
  return "What are the access codes of these vaults: " + names +
         "? Answer with the codes only, in this order.";
}

class Climber {
 public:
  Climber(const CheckContext& context, const LadderPlan& plan)
      : context_(context),
        plan_(plan),
        api_(plan.plain ? wire::Api::kCompletions : wire::Api::kChat),
        prompts_(token_counter(
            context, api_,
            [this](const std::string& text) { return wire::to_body(request(text, "prefix")); },
            &method_)) {}

  Result<RungReport> climb(int64_t target) {
    RungReport report;
    report.target = target;
    report.method = method_;
    const std::vector<Hidden> hidden = hidden_codes(context_, plan_, target);
    const auto prompt = prompts_.build(spec(target, hidden));
    if (!prompt) {
      if (context_.cancel.requested()) return fail(base::cancelled_error());
      report.stopped = "no exact prompt: " + prompt.error().detail;
    } else {
      TRY(send(prompt->text, "cold", hidden, report));
      if (plan_.cached && report.stopped.empty()) TRY(send(prompt->text, "prefix", hidden, report));
    }
    TRY(probe(report));
    return report;
  }

 private:
  std::string lane(int64_t target) const { return "ladder-" + std::to_string(target); }

  wire::GenerationRequest request(const std::string& text, std::string_view state) const {
    auto out = user_request(text, plan_.output_tokens, true);
    if (plan_.plain) {
      out.messages.clear();
      out.prompt = text;
    }
    out.api = api_;
    out.model = context_.model;
    out.effort = context_.effort;
    out.temperature = 0;
    const Json& table = context_.table.document();
    out.extra = table.value("measured_request", Json::object());
    // What this engine needs so that not even the template's first tokens come from its cache.
    if (state == "cold") out.extra.update(table.value("cold_request", Json::object()));
    return out;
  }

  measure::PromptSpec spec(int64_t target, const std::vector<Hidden>& hidden) const {
    measure::PromptSpec out;
    out.target_tokens = target;
    out.seed = static_cast<uint64_t>(context_.seed);
    out.stream = lane(target);
    out.salt = context_.salt;
    for (const Hidden& one : hidden)
      out.needles.push_back(
          {one.depth, "The access code of the " + one.vault + " vault is " + one.code + "."});
    out.question = question(hidden, plan_.plain);
    out.tolerance_tokens = plan_.tolerance_tokens;
    out.tolerance_percent = plan_.tolerance_percent;
    return out;
  }

  Result<void> send(const std::string& text, const std::string& state,
                    const std::vector<Hidden>& hidden, RungReport& report) {
    measure::Attempt attempt;
    attempt.body = wire::to_body(request(text, state));
    evidence::RequestRow& plan = attempt.row;
    plan.purpose = evidence::Purpose::kLadder;
    plan.lane = lane(report.target);
    plan.item = state;
    plan.cache_state = state;
    plan.effort = context_.effort;
    plan.api = api_;
    plan.expect = {{"target", report.target},
                   {"tolerance", measure::tolerance(spec(report.target, hidden))},
                   {"needles", Json::array()}};
    for (const Hidden& one : hidden)
      plan.expect["needles"].push_back({{"depth", one.depth}, {"code", one.code}});
    const evidence::RequestRow row = context_.client.run_one(std::move(attempt), context_.cancel);
    report.rows.push_back(TRY(context_.record(row)));
    if (context_.cancel.requested()) return fail(base::cancelled_error());
    if (state == "cold") report.prompt_tokens = row.answer.usage.prompt.value_or(0);
    if (row.outcome != evidence::Outcome::kOk)
      report.stopped = state + " request: " + std::string(name(row.outcome)) +
                       (row.error_detail.empty() ? "" : ": " + row.error_detail);
    return {};
  }

  // A request that costs one token: an engine can answer its health path while its workers hang.
  Result<void> probe(RungReport& report) {
    measure::Attempt attempt;
    auto tiny = request("Hi", "prefix");
    tiny.max_tokens = 1;
    tiny.stream = false;
    tiny.extra = nullptr;
    attempt.body = wire::to_body(tiny);
    attempt.row.purpose = evidence::Purpose::kProbe;
    attempt.row.lane = lane(report.target);
    attempt.row.item = "health";
    attempt.row.effort = context_.effort;
    attempt.row.api = api_;
    attempt.row.stream = false;
    const evidence::RequestRow row = context_.client.run_one(std::move(attempt), context_.cancel);
    TRY(context_.record(row));
    if (context_.cancel.requested()) return fail(base::cancelled_error());
    report.healthy = row.outcome == evidence::Outcome::kOk;
    if (!report.healthy)
      report.stopped += (report.stopped.empty() ? "" : "; ") + std::string("health probe: ") +
                        std::string(name(row.outcome)) + ": " + row.error_detail;
    return {};
  }

  const CheckContext& context_;
  const LadderPlan& plan_;
  wire::Api api_;
  std::string method_;
  measure::PromptBuilder prompts_;
};

}  // namespace

LadderPlan ladder_plan(const Json& suite) {
  LadderPlan plan;
  const Json ladder = suite.value("ladder", Json::object());
  if (!ladder.is_object()) return plan;
  plan.targets = ladder.value("targets", plan.targets);
  std::sort(plan.targets.begin(), plan.targets.end());
  plan.depths = ladder.value("depths", plan.depths);
  plan.output_tokens = ladder.value("output_tokens", plan.output_tokens);
  plan.tolerance_tokens = ladder.value("tolerance_tokens", plan.tolerance_tokens);
  plan.tolerance_percent = ladder.value("tolerance_percent", plan.tolerance_percent);
  plan.cached = ladder.value("cached", plan.cached);
  plan.plain = suite.value("prompt_style", "chat") == "plain";
  return plan;
}

Json to_json(const RungReport& rung) {
  return {{"target", rung.target},   {"prompt_tokens", rung.prompt_tokens},
          {"method", rung.method},   {"rows", rung.rows},
          {"healthy", rung.healthy}, {"stopped", rung.stopped}};
}

Result<std::vector<RungReport>> run_ladder(CheckContext context, const LadderPlan& plan,
                                           const std::function<void(const RungReport&)>& finished) {
  Climber climber(context, plan);
  std::vector<RungReport> rungs;
  for (const int64_t target : plan.targets) {
    rungs.push_back(TRY(climber.climb(target)));
    if (finished) finished(rungs.back());
    if (!rungs.back().stopped.empty()) break;
  }
  return rungs;
}

}  // namespace anvil::qualify
