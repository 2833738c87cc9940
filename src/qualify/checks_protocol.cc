#include <algorithm>
#include <array>

#include "base/strings.h"
#include "engine/counters.h"
#include "net/http_call.h"
#include "qualify/checks_grade.h"
#include "qualify/checks_list.h"

namespace anvil::qualify {

namespace {

constexpr int64_t kShortAnswer = 48;  // tokens; enough to see a stream
constexpr int kAbortAttempts = 6;
constexpr Nanos kSettle = 5 * kSecond;  // how long an engine may take to drop an aborted request

// Engines known to take ignore_eos, so that an answer cannot end by itself before its limit.
bool takes_ignore_eos(const CheckContext& context) {
  return context.engine == "llama.cpp" || context.engine == "vllm" || context.engine == "sglang";
}

wire::GenerationRequest counting_request(const CheckContext& context, int64_t max_tokens,
                                         bool stream) {
  auto request =
      user_request("Count from 1 to 300 in digits, separated by spaces.", max_tokens, stream);
  request.ignore_eos = takes_ignore_eos(context);
  return request;
}

Result<Grade> stream_protocol(CheckSender& sender) {
  const int64_t budget = std::min(kShortAnswer, sender.context().max_tokens);
  const std::string prompt = "Name the planets of the solar system, one per line.";
  const evidence::RequestRow unary = TRY(sender.ask(user_request(prompt, budget, false)));
  if (auto broken = transport_verdict(unary)) return *broken;
  const evidence::RequestRow stream = TRY(sender.ask(user_request(prompt, budget, true)));
  if (auto broken = transport_verdict(stream)) return *broken;
  return grade_stream(stream, unary);
}

Result<Grade> stop(CheckSender& sender) {
  auto request = user_request("Name the planets of the solar system, one per line.",
                              sender.context().max_tokens, false);
  const evidence::RequestRow reference = TRY(sender.ask(request));
  if (auto broken = transport_verdict(reference)) return *broken;
  const std::string& text = reference.answer.content;
  const auto stop = choose_stop(text);
  if (!stop)
    return failed("the answer without a stop string has too little text to choose one from",
                  {{"reference", base::to_valid_utf8(text)}});
  request.stop = {*stop};
  const evidence::RequestRow stopped = TRY(sender.ask(std::move(request)));
  if (auto broken = transport_verdict(stopped)) return *broken;
  return grade_stop(text, *stop, stopped.answer);
}

Result<Grade> max_tokens(CheckSender& sender) {
  constexpr int64_t kLimit = 8;
  const evidence::RequestRow row =
      TRY(sender.ask(counting_request(sender.context(), kLimit, false)));
  if (auto broken = transport_verdict(row)) return *broken;
  return grade_max_tokens(kLimit, row.answer);
}

Result<Grade> reasoning_separation(CheckSender& sender) {
  const evidence::RequestRow row = TRY(sender.ask(user_request(
      "A shelf holds 17 boxes with 3 lamps each. How many lamps are there? Answer with "
      "one short sentence.",
      sender.context().max_tokens, true)));
  if (auto broken = transport_verdict(row)) return *broken;
  return grade_reasoning_separation(row.answer);
}

Result<Grade> usage_consistency(CheckSender& sender) {
  const std::string prompt = "Say hello to the harbour of " +
                             code_word(sender.context().seed, "usage") + " in one sentence.";
  std::array<evidence::RequestRow, 3> rows;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = TRY(sender.ask(user_request(prompt, 8, i == 2)));
    if (auto broken = transport_verdict(rows[i])) return *broken;
  }
  return grade_usage(rows[0], rows[1], rows[2]);
}

Result<Grade> unknown_model(CheckSender& sender) {
  auto request = user_request("Say hello.", 4, false);
  request.model = "anvil-no-such-model-" + base::lower(code_word(sender.context().seed, "model"));
  const evidence::RequestRow row = TRY(sender.ask(std::move(request)));
  return grade_unknown_model(row, sender.context().engine == "llama.cpp");
}

Result<Grade> context_overflow(CheckSender& sender) {
  const auto& context = sender.context();
  if (context.context_tokens <= 0)
    return skipped("no context length is declared, so there is nothing to exceed");
  // Every number is at least one token in every tokenizer.
  const int64_t numbers = context.context_tokens + context.context_tokens / 8 + 64;
  std::string prompt = "Which of these numbers is the largest?";
  for (int64_t i = 0; i < numbers; ++i) prompt += " " + std::to_string(i);
  auto request = user_request(std::move(prompt), 4, false);
  const evidence::RequestRow row = TRY(sender.ask(request, nullptr, false));
  request.messages[0].content =
      "Which of these numbers is the largest? 0 1 2 ... " + std::to_string(numbers - 1);
  sender.remember(wire::to_json(request), sender.answer());
  return grade_overflow(row, numbers, context.context_tokens);
}

// Requests that the engine runs at this moment, by its gauge, else by llama.cpp's slots.
std::optional<int64_t> running_requests(const CheckContext& context) {
  const auto counters =
      engine::read_counters(context.table, context.endpoint.base_url, context.endpoint.api_key);
  if (counters && counters->values.value("running", Json(nullptr)).is_number())
    return static_cast<int64_t>(counters->values["running"].get<double>());
  if (context.engine != "llama.cpp") return std::nullopt;
  const auto url = net::parse_url(context.endpoint.base_url);
  if (!url) return std::nullopt;
  net::HttpCall call;
  call.path = "/slots";
  call.api_key = context.endpoint.api_key;
  const auto reply = net::http_call(*url, call, &context.cancel);
  if (!reply || reply->status != 200) return std::nullopt;
  const auto slots = base::parse_json(reply->body, "/slots");
  if (!slots || !slots->is_array()) return std::nullopt;
  int64_t busy = 0;
  for (const Json& slot : *slots)
    busy += slot.is_object() && slot.value("is_processing", false) ? 1 : 0;
  return busy;
}

Result<Grade> cancel(CheckSender& sender) {
  const auto& context = sender.context();
  // A short stream first: it says when output begins and how fast it comes, so that the abort falls
  // into the middle of the long one on every machine.
  const evidence::RequestRow pace = TRY(sender.ask(counting_request(context, 32, true)));
  if (auto broken = transport_verdict(pace)) return *broken;
  if (!pace.stamps.sent || !pace.stamps.first_output || !pace.stamps.last_output)
    return failed("the stream carried no output");
  CancelObservation seen;
  seen.before = TRY(sender.ask(user_request("Say hello.", 4, false)));
  if (auto broken = transport_verdict(seen.before)) return *broken;

  const Nanos generation = *pace.stamps.last_output - *pace.stamps.first_output;
  Nanos patience =
      *pace.stamps.first_output - *pace.stamps.sent + std::max(generation, 20 * kMillisecond);
  // The pace may change between the two; an abort that missed the middle is tried again.
  for (int attempt = 0; attempt < kAbortAttempts; ++attempt) {
    measure::Limits limits;
    limits.total = patience;
    measure::Client impatient(context.endpoint, limits);
    seen.aborted = TRY(sender.ask(counting_request(context, 2048, true), &impatient));
    if (seen.aborted.outcome == evidence::Outcome::kOk)
      patience = std::max(patience / 2, kMillisecond);
    else if (seen.aborted.outcome == evidence::Outcome::kTimeout && seen.aborted.chunks.empty())
      patience *= 2;
    else
      break;
  }
  const Json request = sender.request(), answer = sender.answer();
  const Nanos aborted_at = mono_now();
  seen.after = TRY(sender.ask(user_request("Say hello.", 4, false)));
  do {
    seen.running = running_requests(context);
    seen.waited = mono_now() - aborted_at;
    if (!seen.running || *seen.running == 0) break;
  } while (seen.waited < kSettle &&
           base::sleep_unless_cancelled(context.cancel, 50 * kMillisecond));
  if (context.cancel.requested()) return fail(base::cancelled_error());
  sender.remember(request, answer);
  return grade_cancel(seen);
}

constexpr std::array<Check, 8> kChecks{{
    {"stream-protocol",
     "a stream ends with its marker, carries usage and a finish reason, and its pieces add up",
     true, stream_protocol},
    {"stop", "a stop string ends the answer and is not part of it", true, stop},
    {"max-tokens", "an answer is cut after exactly the tokens that were allowed, finish length",
     true, max_tokens},
    {"reasoning-separation",
     "visible content holds no reasoning tags, special tokens or broken characters", true,
     reasoning_separation},
    {"usage-consistency", "the same prompt counts the same tokens, and the counts fit together",
     true, usage_consistency},
    {"unknown-model", "a model name that is not served is refused", false, unknown_model},
    {"context-overflow", "a prompt above the context is refused and not silently cut", false,
     context_overflow},
    {"cancel", "a request that its client abandons stops running and blocks nobody", false, cancel},
}};

}  // namespace

std::span<const Check> protocol_checks() {
  return kChecks;
}

}  // namespace anvil::qualify
