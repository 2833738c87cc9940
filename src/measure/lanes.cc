#include "measure/lanes.h"

#include <algorithm>

#include "wire/chat_request.h"

namespace anvil::measure {

namespace {

constexpr std::string_view kQuestion = "Continue this text in the same style, at length.";
// Tokens that a prefix lane keeps for what differs: nonce, filler and question.
constexpr int64_t kOwnTokens = 48;

class LaneReader {
 public:
  explicit LaneReader(const Json& lane) : lane_(lane) {}

  Result<std::string> text(const char* key, std::string otherwise) const {
    if (!lane_.contains(key)) return otherwise;
    if (!lane_[key].is_string()) return wrong(key, "must be a string");
    return lane_[key].get<std::string>();
  }
  Result<int64_t> count(const char* key, int64_t otherwise, int64_t min) const {
    if (!lane_.contains(key)) return otherwise;
    if (!lane_[key].is_number_integer() || lane_[key].get<int64_t>() < min ||
        lane_[key].get<int64_t>() > 100'000'000)
      return wrong(key, "must be an integer from " + std::to_string(min));
    return lane_[key].get<int64_t>();
  }
  Result<bool> flag(const char* key, bool otherwise) const {
    if (!lane_.contains(key)) return otherwise;
    if (!lane_[key].is_boolean()) return wrong(key, "must be true or false");
    return lane_[key].get<bool>();
  }
  tl::unexpected<Error> wrong(const char* key, const std::string& what) const {
    const bool named = lane_.contains("id") && lane_["id"].is_string();
    return fail(Kind::kInvalidInput, Side::kClient,
                "lane " + (named ? "\"" + lane_["id"].get<std::string>() + "\"" : "without id") +
                    ": " + key + " " + what);
  }

 private:
  const Json& lane_;
};

wire::GenerationRequest generation(const LanePlan& lane, const LaneContext& context,
                                   const std::string& prompt) {
  wire::GenerationRequest request;
  request.api = lane.api;
  request.model = context.model;
  request.prompt = prompt;
  request.max_tokens = lane.output_tokens;
  request.temperature = context.temperature;
  request.seed = static_cast<int64_t>(context.seed & 0x7fffffff);
  request.effort = context.effort;
  request.stream = lane.stream;
  request.extra = Json::object();
  if (lane.fixed_output) {
    request.ignore_eos = true;
    request.extra["min_tokens"] = lane.output_tokens;
  }
  if (context.extra.is_object()) request.extra.update(context.extra);
  if (lane.cache == "cold" && context.cold_extra.is_object())
    request.extra.update(context.cold_extra);
  return request;
}

Attempt attempt(const LanePlan& lane, const LaneContext& context, evidence::Purpose purpose,
                std::string item, const std::string& prompt) {
  Attempt out;
  out.row.purpose = purpose;
  out.row.lane = lane.id;
  out.row.item = std::move(item);
  out.row.effort = context.effort;
  out.row.api = lane.api;
  out.row.stream = lane.stream;
  out.row.concurrency = purpose == evidence::Purpose::kLane ? lane.concurrency : 1;
  if (purpose == evidence::Purpose::kLane) out.row.cache_state = lane.cache;
  out.row.expect = {{"prompt_tokens", lane.prompt_tokens}};
  if (lane.fixed_output) out.row.expect["output_tokens"] = lane.output_tokens;
  out.body = lane_body(lane, context, prompt);
  return out;
}

}  // namespace

Result<LanePlan> lane_plan(const Json& lane) {
  const LaneReader read(lane);
  if (!lane.is_object()) return read.wrong("the lane", "must be a table");
  LanePlan plan;
  plan.id = TRY(read.text("id", ""));
  if (plan.id.empty()) return read.wrong("id", "must be given");
  plan.prompt_tokens = TRY(read.count("prompt_tokens", plan.prompt_tokens, 1));
  plan.output_tokens = TRY(read.count("output_tokens", plan.output_tokens, 1));
  plan.concurrency = static_cast<int>(TRY(read.count("concurrency", plan.concurrency, 1)));
  plan.requests = static_cast<int>(TRY(read.count("requests", plan.requests, 1)));
  plan.warmup = static_cast<int>(TRY(read.count("warmup", plan.warmup, 0)));
  plan.fixed_output = TRY(read.flag("fixed_output", plan.fixed_output));
  plan.stream = TRY(read.flag("stream", plan.stream));
  plan.cache = TRY(read.text("cache", plan.cache));
  if (plan.cache != "cold" && plan.cache != "prefix")
    return read.wrong("cache", "must be \"cold\" or \"prefix\"");
  const std::string api = TRY(read.text("api", std::string(wire::name(plan.api))));
  const auto known = wire::api_from_name(api);
  if (!known) return read.wrong("api", "must be \"chat\", \"completions\" or \"responses\"");
  plan.api = *known;
  return plan;
}

std::string lane_body(const LanePlan& lane, const LaneContext& context, const std::string& prompt) {
  return wire::to_body(generation(lane, context, prompt));
}

Result<LaneAttempts> build_lane(const LanePlan& lane, const LaneContext& context,
                                PromptBuilder& prompts, const std::function<void(int)>& made) {
  LaneAttempts out;
  int count = 0;
  PromptSpec spec;
  spec.seed = context.seed;
  spec.salt = context.salt;
  if (lane.api != wire::Api::kCompletions) spec.question = kQuestion;

  const auto prompt = [&](const std::string& item) -> Result<std::string> {
    spec.stream = lane.id + "/" + item;
    Result<ExactPrompt> exact = prompts.build(spec);
    if (!exact)
      return fail(std::move(exact.error().with_context("lane \"" + lane.id + "\", " + item)));
    out.counter_calls += exact->counter_calls;
    if (made) made(++count);
    return std::move(exact->text);
  };

  spec.target_tokens = lane.prompt_tokens;
  for (int i = 0; i < lane.warmup; ++i) {
    const std::string item = "warmup-" + std::to_string(i);
    out.unmeasured.push_back(
        attempt(lane, context, evidence::Purpose::kWarmup, item, TRY(prompt(item))));
  }
  if (lane.cache == "prefix") {
    const std::string question = std::exchange(spec.question, {});
    spec.target_tokens = std::min(lane.prompt_tokens * 9 / 10, lane.prompt_tokens - kOwnTokens);
    spec.shared_prefix = TRY(prompt("shared"));
    spec.question = question;
    spec.target_tokens = lane.prompt_tokens;
    out.unmeasured.push_back(
        attempt(lane, context, evidence::Purpose::kWarmup, "prime", TRY(prompt("prime"))));
  }
  for (int i = 0; i < lane.requests; ++i) {
    const std::string item = "request-" + std::to_string(i);
    out.measured.push_back(
        attempt(lane, context, evidence::Purpose::kLane, item, TRY(prompt(item))));
  }
  return out;
}

}  // namespace anvil::measure
