#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "wire/http_head.h"

using anvil::wire::ResponseHeadParser;

namespace {

// The verdict, in a form that can be compared.
std::string parse(std::string_view text, size_t step) {
  ResponseHeadParser parser;
  for (size_t cut = std::min(step, text.size());; cut = std::min(cut + step, text.size())) {
    const std::string buffer(text.substr(0, cut));
    const auto size = parser.parse(buffer);
    if (!size) return size.error().detail;
    if (*size > buffer.size()) std::abort();
    if (*size > 0) {
      std::string out = std::to_string(*size) + " " + std::to_string(parser.head().status);
      for (const auto& field : parser.head().fields) {
        out.append(field.name).append("=").append(field.value).append(";");
      }
      const auto framing = body_framing(parser.head(), "POST");
      return out + std::to_string(static_cast<int>(framing.kind)) + std::to_string(framing.length);
    }
    if (cut == text.size()) return "more";
  }
}

}  // namespace

// Any bytes give the same verdict however they are split.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string whole = parse(text, size + 1);
  if (parse(text, 1) != whole || parse(text, 7) != whole) std::abort();

  // What request_head() accepts holds exactly one head.
  const size_t third = size / 3;
  const anvil::wire::HeaderField field[] = {{text.substr(0, third), text.substr(third, third)}};
  const auto head = anvil::wire::request_head("GET", "/" + std::string(text.substr(2 * third)),
                                              "localhost", field);
  if (head && head->find("\r\n\r\n") != head->size() - 4) std::abort();
  return 0;
}
