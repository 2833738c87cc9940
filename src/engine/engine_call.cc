#include "engine/engine_call.h"

#include "base/strings.h"
#include "net/http_call.h"

namespace anvil::engine {

namespace {

constexpr Nanos kCallLimit = 30 * kSecond;
constexpr uint64_t kAnswerLimit = 64u << 20;
constexpr size_t kShownBytes = 300;

// The message of an error body in any of the usual forms, else its first bytes.
std::string message_of(const std::string& body) {
  const auto json = base::parse_json(body, "error");
  if (json && json->is_object()) {
    for (const char* pointer : {"/error/message", "/message", "/detail", "/error"}) {
      const Json::json_pointer at(pointer);
      if (json->contains(at) && (*json)[at].is_string()) return (*json)[at].get<std::string>();
    }
  }
  return base::to_valid_utf8(base::trim(std::string_view(body).substr(0, kShownBytes)));
}

}  // namespace

Result<std::string> call_text(const std::string& base_url, const std::string& path,
                              const std::string& api_key, const Json* body) {
  const net::Url url = TRY(net::parse_url(base_url));
  net::HttpCall call;
  call.path = path;
  call.api_key = api_key;
  call.limit = kCallLimit;
  call.max_body = kAnswerLimit;
  if (body != nullptr) {
    call.method = "POST";
    call.body = body->dump();
  }
  net::HttpReply reply = TRY(net::http_call(url, call));
  if (reply.status < 200 || reply.status > 299) {
    return fail(Kind::kHttpStatus, Side::kUpstream,
                call.method + " " + path + " answers " + std::to_string(reply.status) + ": " +
                    message_of(reply.body));
  }
  return std::move(reply.body);
}

Result<Json> call_json(const std::string& base_url, const std::string& path,
                       const std::string& api_key, const Json* body) {
  const std::string text = TRY(call_text(base_url, path, api_key, body));
  return base::parse_json(text, path);
}

}  // namespace anvil::engine
