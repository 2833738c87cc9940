#include "base/json.h"
#include "base/strings.h"
#include "wire/stream_decoder.h"

namespace anvil::wire {

namespace {

constexpr size_t kMaxText = 500;

std::string word(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? std::string()
                         : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string field(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? std::string() : word(*found);
}

// FastAPI validation: [{"loc":["body","messages"],"msg":"field required","type":"missing"}]
std::string detail_text(const Json& detail) {
  if (!detail.is_array()) return word(detail);
  std::string text;
  for (const Json& item : detail) {
    if (!text.empty()) text += "; ";
    if (!item.is_object() || !item.contains("msg")) {
      text += word(item);
      continue;
    }
    std::string place;
    const auto location = item.find("loc");
    if (location != item.end() && location->is_array()) {
      for (const Json& step : *location) place += (place.empty() ? "" : ".") + word(step);
    }
    text += place.empty() ? field(item, "msg") : place + ": " + field(item, "msg");
  }
  return text;
}

}  // namespace

ReportedError parse_error_body(std::string_view body) {
  const std::string_view text = base::trim(body);
  const Json document = Json::parse(text, nullptr, false);
  const Json* source = &document;
  if (document.is_object()) {
    const auto error = document.find("error");
    if (error != document.end() && error->is_string()) {
      return {error->get<std::string>(), field(document, "type"), field(document, "code")};
    }
    if (error != document.end() && error->is_object()) source = &*error;
    const auto detail = source->find("detail");
    if (!source->contains("message") && detail != source->end()) {
      return {detail_text(*detail), field(*source, "type"), field(*source, "code")};
    }
    if (source->contains("message")) {
      return {field(*source, "message"), field(*source, "type"), field(*source, "code")};
    }
  }
  if (document.is_string()) return {document.get<std::string>(), "", ""};
  return {base::to_valid_utf8(text.substr(0, kMaxText)), "", ""};
}

}  // namespace anvil::wire
