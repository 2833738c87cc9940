#include "qualify/fingerprint.h"

#include "base/hash.h"
#include "base/strings.h"
#include "engine/tokenizer.h"
#include "qualify/checks_send.h"

namespace anvil::qualify {

namespace {

constexpr std::string_view kMinimal = "Say hi";
constexpr std::string_view kLonger =
    "Say hi to every ship that lies in the harbour tonight, one after the other.";

Json or_null(const std::optional<int64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string ticked(const std::string& effort) {
  return effort.empty() ? "the prompt" : "`" + effort + "`";
}

// Why an effort does not add what it should, in the words of its pattern.
std::string explain(const FingerprintInput& input, const EffortCount& count, int64_t delta) {
  if (delta == 0) return ticked(count.effort) + " not applied";
  for (const EffortCount& other : input.efforts)
    if (other.effort != count.effort && other.declared.value_or(0) == delta)
      return ticked(count.effort) + " carries the " + other.effort + " prefix";
  return ticked(count.effort) + " adds " + std::to_string(delta) + " tokens, " +
         std::to_string(*count.declared) + " declared";
}

struct Judged {
  std::string verdict, explanation;
};
Judged judge_effort(const FingerprintInput& input, const EffortCount& count,
                    const std::optional<int64_t>& delta) {
  if (!count.prompt_tokens && count.refused)
    return {"mismatch", ticked(count.effort) + " refused: " + count.problem};
  if (!count.prompt_tokens) return {"not measured", count.problem};
  if (!count.declared || !delta) return {"not declared", ""};
  if (*delta == *count.declared) return {"match", ""};
  return {"mismatch", explain(input, count, *delta)};
}

// The words for a fingerprint in which nothing is wrong.
std::string all_well(const FingerprintInput& input, const std::string& verdict) {
  if (verdict == "match") return "every declared delta is seen";
  if (verdict == "stable") return "the count is stable and moves with the text";
  if (verdict == "not measured") {
    for (const EffortCount& count : input.efforts)
      if (!count.problem.empty()) return ticked(count.effort) + " not counted: " + count.problem;
    return "the engine reports no prompt token count";
  }
  std::vector<std::string> deltas;
  bool any = false;
  for (const EffortCount& count : input.efforts) {
    const int64_t delta = *count.prompt_tokens - *input.efforts[0].prompt_tokens;
    any = any || delta != 0;
    deltas.push_back(ticked(count.effort) + " " + (delta < 0 ? "" : "+") + std::to_string(delta));
  }
  return any ? "no deltas are declared; seen: " + base::join(deltas, ", ")
             : "no deltas are declared, and no effort changes the prompt";
}

struct Counted {
  std::optional<int64_t> tokens;
  bool refused = false;
  std::string problem;
};

class Prober {
 public:
  explicit Prober(const CheckContext& context)
      : context_(context),
        tokenizer_(context.table, context.endpoint.base_url, context.model,
                   context.endpoint.api_key) {}

  Result<Counted> count(std::string_view text, const std::string& effort, const std::string& item) {
    const auto request = request_of(text, effort);
    measure::Attempt attempt;
    attempt.body = wire::to_body(request);
    attempt.keep_body = true;
    attempt.row.purpose = evidence::Purpose::kFingerprint;
    attempt.row.lane = "fingerprint";
    attempt.row.item = item;
    attempt.row.effort = effort;
    attempt.row.stream = false;
    const evidence::RequestRow row = context_.client.run_one(std::move(attempt), context_.cancel);
    TRY(context_.record(row));
    if (context_.cancel.requested()) return fail(base::cancelled_error());
    if (row.outcome != evidence::Outcome::kOk)
      return Counted{std::nullopt, row.outcome == evidence::Outcome::kHttpError,
                     std::string(name(row.outcome)) + ": " + row.error_detail};
    return Counted{row.answer.usage.prompt, false, ""};
  }

  void render(EffortCount& count) {
    if (!tokenizer_.can_render()) return;
    const auto rendered = tokenizer_.render(wire::to_json(request_of(kMinimal, count.effort)));
    if (!rendered || rendered->tokens.empty()) return;
    count.rendered = static_cast<int64_t>(rendered->tokens.size());
    std::string ids;
    for (const int64_t id : rendered->tokens) ids += (ids.empty() ? "" : ",") + std::to_string(id);
    count.rendered_sha256 = base::sha256(ids);
    if (!count.prompt_tokens && count.problem.empty()) count.prompt_tokens = count.rendered;
  }

 private:
  wire::GenerationRequest request_of(std::string_view text, const std::string& effort) const {
    auto request = user_request(std::string(text), 1, false);
    request.model = context_.model;
    request.effort = effort;
    request.temperature = 0;
    return request;
  }

  const CheckContext& context_;
  engine::Tokenizer tokenizer_;
};

}  // namespace

Json judge_fingerprint(const FingerprintInput& input) {
  Json efforts = Json::array();
  std::vector<std::string> wrong;
  bool declared = false, measured = !input.efforts.empty();
  const auto base = input.efforts.empty() ? std::nullopt : input.efforts[0].prompt_tokens;
  for (const EffortCount& count : input.efforts) {
    std::optional<int64_t> delta;
    if (count.prompt_tokens && base) delta = *count.prompt_tokens - *base;
    const Judged judged = judge_effort(input, count, delta);
    if (judged.verdict == "mismatch") wrong.push_back(judged.explanation);
    declared = declared || count.declared.has_value();
    measured = measured && count.prompt_tokens.has_value();
    efforts.push_back({{"effort", count.effort},
                       {"prompt_tokens", or_null(count.prompt_tokens)},
                       {"delta", or_null(delta)},
                       {"declared", or_null(count.declared)},
                       {"rendered", or_null(count.rendered)},
                       {"rendered_sha256", count.rendered_sha256},
                       {"verdict", judged.verdict},
                       {"explanation", judged.explanation}});
  }
  const bool stable = base && input.repeat == base;
  const bool moves = base && input.longer && *input.longer > *base;
  if (measured && !stable)
    wrong.push_back("the same prompt counts " + std::to_string(*base) + " tokens once and " +
                    (input.repeat ? std::to_string(*input.repeat) : "none") + " the second time");
  if (measured && !moves) wrong.push_back("the count does not grow with the text");
  std::string verdict = !wrong.empty()              ? "mismatch"
                        : !measured                 ? "not measured"
                        : declared                  ? "match"
                        : input.efforts.size() <= 1 ? "stable"
                                                    : "not declared";
  std::string explanation = wrong.empty() ? all_well(input, verdict) : base::join(wrong, "; ");
  for (const EffortCount& count : input.efforts)
    if (count.rendered && count.prompt_tokens && *count.rendered != *count.prompt_tokens)
      explanation += "; the render endpoint counts " + std::to_string(*count.rendered) +
                     " tokens for " + ticked(count.effort) + ", the chat endpoint " +
                     std::to_string(*count.prompt_tokens);
  return {{"method", input.method},
          {"efforts", std::move(efforts)},
          {"repeat", or_null(input.repeat)},
          {"longer", or_null(input.longer)},
          {"stable", stable},
          {"moves", moves},
          {"verdict", std::move(verdict)},
          {"explanation", std::move(explanation)}};
}

Result<Json> run_fingerprint(CheckContext context, const FingerprintPlan& plan) {
  Prober prober(context);
  FingerprintInput input;
  const std::vector<std::string> efforts =
      plan.efforts.empty() ? std::vector<std::string>{""} : plan.efforts;
  bool confirmed = true;
  for (const std::string& effort : efforts) {
    EffortCount count;
    count.effort = effort;
    const Counted counted = TRY(prober.count(kMinimal, effort, effort.empty() ? "none" : effort));
    count.prompt_tokens = counted.tokens;
    count.refused = counted.refused;
    count.problem = counted.problem;
    if (const auto it = plan.declared.find(effort);
        it != plan.declared.end() && it->is_number_integer())
      count.declared = it->get<int64_t>();
    prober.render(count);
    confirmed = confirmed && count.rendered && count.rendered == count.prompt_tokens;
    input.efforts.push_back(std::move(count));
  }
  input.method = confirmed ? "render" : "usage";
  input.repeat = TRY(prober.count(kMinimal, efforts[0], "repeat")).tokens;
  input.longer = TRY(prober.count(kLonger, efforts[0], "longer")).tokens;
  return judge_fingerprint(input);
}

}  // namespace anvil::qualify
