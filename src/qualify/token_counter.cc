#include "qualify/token_counter.h"

#include <memory>

#include "engine/tokenizer.h"

namespace anvil::qualify {

namespace {

// The request with one output token; its usage tells the prompt tokens.
Result<int64_t> count_by_usage(const CheckContext& context, wire::Api api,
                               const std::string& body) {
  Json request = TRY(base::parse_json(body, "request body"));
  for (const char* key : {"max_tokens", "max_completion_tokens", "max_output_tokens", "min_tokens"})
    if (request.contains(key)) request[key] = 1;
  request["stream"] = false;
  request.erase("stream_options");
  request.erase("ignore_eos");
  measure::Attempt attempt;
  attempt.body = base::canonical(request);
  attempt.row.purpose = evidence::Purpose::kCalibrate;
  attempt.row.item = "count";
  attempt.row.api = api;
  attempt.row.stream = false;
  attempt.row.effort = context.effort;
  const evidence::RequestRow row = context.client.run_one(std::move(attempt), context.cancel);
  TRY(context.record(row));
  if (row.outcome != evidence::Outcome::kOk)
    return fail(
        row.outcome == evidence::Outcome::kCancelled ? Kind::kCancelled : Kind::kUpstreamError,
        Side::kEngine, "counting the tokens of a prompt: " + row.error_detail);
  if (row.answer.usage.prompt) return *row.answer.usage.prompt;
  if (row.answer.timings && row.answer.timings->prompt_n)
    return *row.answer.timings->prompt_n + row.answer.timings->cache_n.value_or(0);
  return fail(Kind::kUnsupported, Side::kEngine, "the engine reports no prompt token count",
              "exact prompts need a tokenizer endpoint or usage in the answers");
}

}  // namespace

measure::TokenCounter token_counter(const CheckContext& context, wire::Api api,
                                    std::function<std::string(const std::string&)> body,
                                    std::string* method) {
  auto tokenizer = std::make_shared<engine::Tokenizer>(context.table, context.endpoint.base_url,
                                                       context.model, context.endpoint.api_key);
  const bool plain = api == wire::Api::kCompletions;
  if (plain ? tokenizer->can_tokenize() : api == wire::Api::kChat && tokenizer->can_render()) {
    if (method) *method = "tokenize";
    return [tokenizer, plain, body = std::move(body)](const std::string& text) -> Result<int64_t> {
      if (plain) return tokenizer->count(text, true);
      const Json request = TRY(base::parse_json(body(text), "request body"));
      return static_cast<int64_t>(TRY(tokenizer->render(request)).tokens.size());
    };
  }
  if (method) *method = "usage";
  return [&context, api, body = std::move(body)](const std::string& text) {
    return count_by_usage(context, api, body(text));
  };
}

}  // namespace anvil::qualify
