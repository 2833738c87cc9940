#include "qualify/checks_send.h"

#include "base/strings.h"

namespace anvil::qualify {

Grade pass(std::string detail, Json evidence) {
  return {CheckVerdict::kPass, std::move(detail), std::move(evidence)};
}
Grade failed(std::string detail, Json evidence) {
  return {CheckVerdict::kFail, std::move(detail), std::move(evidence)};
}
Grade skipped(std::string detail, Json evidence) {
  return {CheckVerdict::kSkipped, std::move(detail), std::move(evidence)};
}

Result<evidence::RequestRow> CheckSender::ask(wire::GenerationRequest request,
                                              measure::Client* client, bool keep_body) {
  if (request.model.empty()) request.model = context_.model;
  request.effort = context_.effort;
  if (!request.temperature) request.temperature = 0;
  measure::Attempt attempt;
  attempt.body = wire::to_body(request);
  attempt.keep_body = keep_body;
  attempt.row.purpose = evidence::Purpose::kCheck;
  attempt.row.lane = check_;
  attempt.row.item = check_;
  attempt.row.attempt = attempt_;
  attempt.row.effort = context_.effort;
  attempt.row.api = request.api;
  attempt.row.stream = request.stream;
  if (keep_body) request_ = wire::to_json(request);
  measure::Client& sender = client != nullptr ? *client : context_.client;
  evidence::RequestRow row = sender.run_one(std::move(attempt), context_.cancel);
  rows_.push_back(TRY(context_.record(row)));
  answer_ = answer_json(row.answer);
  if (context_.cancel.requested()) return fail(base::cancelled_error());
  return row;
}

std::optional<Grade> transport_verdict(const evidence::RequestRow& row) {
  if (row.outcome == evidence::Outcome::kOk) return std::nullopt;
  Json evidence = {{"outcome", name(row.outcome)}, {"status", row.status}};
  std::string said = row.error_detail;
  if (row.answer.error && said.empty()) said = row.answer.error->message;
  if (row.outcome == evidence::Outcome::kHttpError && (row.status == 404 || row.status == 501)) {
    // Engines answer 404 to an unknown model too; that is no missing surface.
    const std::string message = base::lower(row.answer.error ? row.answer.error->message : said);
    if (message.find("model") == std::string::npos)
      return skipped("the engine does not offer " + std::string(wire::path(row.api)) + ": status " +
                         std::to_string(row.status),
                     std::move(evidence));
  }
  return failed(std::string(name(row.outcome)) + ": " + said, std::move(evidence));
}

Json answer_json(const wire::Answer& answer) {
  Json calls = Json::array();
  for (const wire::ToolCall& call : answer.tool_calls)
    calls.push_back({{"id", base::to_valid_utf8(call.id)},
                     {"name", base::to_valid_utf8(call.name)},
                     {"arguments", base::to_valid_utf8(call.arguments)}});
  return {{"content", base::to_valid_utf8(answer.content)},
          {"reasoning", base::to_valid_utf8(answer.reasoning)},
          {"tool_calls", std::move(calls)},
          {"finish", base::to_valid_utf8(answer.finish)}};
}

wire::GenerationRequest user_request(std::string text, int64_t max_tokens, bool stream) {
  wire::GenerationRequest request;
  wire::ChatMessage message;
  message.role = "user";
  message.content = std::move(text);
  request.messages.push_back(std::move(message));
  request.max_tokens = max_tokens;
  request.stream = stream;
  return request;
}

}  // namespace anvil::qualify
