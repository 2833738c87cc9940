#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "evidence/request_row.h"
#include "qualify/checks.h"
#include "wire/chat_request.h"

namespace anvil::qualify {

// What a check concludes, before it is put together with who asked what.
struct Grade {
  CheckVerdict verdict = CheckVerdict::kFail;
  std::string detail;
  Json evidence = Json::object();
};
Grade pass(std::string detail, Json evidence = Json::object());
Grade failed(std::string detail, Json evidence = Json::object());
Grade skipped(std::string detail, Json evidence = Json::object());

// Sends the requests of one attempt of one check. Fills in model, effort and temperature 0, records
// every row, and remembers the rows and the exchange that the verdict is about. Lives as long as
// the attempt, on one thread.
class CheckSender {
 public:
  CheckSender(const CheckContext& context, std::string check, int attempt)
      : context_(context), check_(std::move(check)), attempt_(attempt) {}

  const CheckContext& context() const { return context_; }

  // Sends and records. An engine's failure is in the row; errors are those of `record`, and
  // kCancelled. `client` replaces the context's own; `keep_body` copies the body into the row.
  Result<evidence::RequestRow> ask(wire::GenerationRequest request,
                                   measure::Client* client = nullptr, bool keep_body = true);

  const std::vector<int64_t>& rows() const { return rows_; }
  // Of the latest ask().
  const Json& request() const { return request_; }
  const Json& answer() const { return answer_; }
  // Replaces what is remembered: where the body is too large to keep, or the verdict is about an
  // earlier exchange.
  void remember(Json request, Json answer) {
    request_ = std::move(request);
    answer_ = std::move(answer);
  }

 private:
  const CheckContext& context_;
  std::string check_;
  int attempt_;
  std::vector<int64_t> rows_;
  Json request_, answer_;
};

// Nothing if the engine answered in full. Else the verdict that its failure means: skipped only for
// a surface that the engine does not have (404 or 501 that does not speak of the model), a fail
// with the class of the failure otherwise.
std::optional<Grade> transport_verdict(const evidence::RequestRow& row);

// {"content","reasoning","tool_calls":[{"id","name","arguments"}],"finish"}
Json answer_json(const wire::Answer& answer);

// A chat request with one user message.
wire::GenerationRequest user_request(std::string text, int64_t max_tokens, bool stream);

}  // namespace anvil::qualify
