#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "wire/chunked.h"

namespace {

std::string decode(std::string_view text, size_t step) {
  anvil::wire::ChunkedDecoder decoder;
  std::string payload;
  for (size_t at = 0; at < text.size(); at += step) {
    const std::string piece(text.substr(at, step));
    std::string_view input(piece);
    while (!input.empty()) {
      const auto result = decoder.next(input);
      if (!result) return payload + "|" + result.error().detail;
      if (result->consumed > input.size()) std::abort();
      if (result->consumed == 0 && !result->done) std::abort();
      payload += result->payload;
      if (result->done)
        return payload + "|done at " +
               std::to_string(at + piece.size() - input.size() + result->consumed);
      input.remove_prefix(result->consumed);
    }
  }
  return payload + "|more";
}

}  // namespace

// Any bytes give the same payload and verdict however they are split.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string whole = decode(text, size + 1);
  if (decode(text, 1) != whole || decode(text, 5) != whole) std::abort();
  return 0;
}
