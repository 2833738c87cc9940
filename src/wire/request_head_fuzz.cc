#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "wire/request_head.h"

using anvil::wire::RequestHeadParser;

namespace {

// The verdict, in a form that can be compared.
std::string parse(std::string_view text, size_t step) {
  RequestHeadParser parser;
  for (size_t cut = std::min(step, text.size());; cut = std::min(cut + step, text.size())) {
    const std::string buffer(text.substr(0, cut));
    const auto size = parser.parse(buffer);
    if (!size) return size.error().detail;
    if (*size > buffer.size()) std::abort();
    if (*size > 0) {
      const auto& head = parser.head();
      std::string out = std::to_string(*size) + std::string(head.method) + std::string(head.target);
      for (const auto& field : head.fields)
        out.append(field.name).append("=").append(field.value).append(";");
      return out + std::to_string(head.content_length.value_or(0)) + (head.chunked ? "c" : "") +
             (head.keep_alive ? "k" : "");
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
  return 0;
}
