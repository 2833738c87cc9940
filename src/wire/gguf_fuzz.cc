#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "wire/gguf.h"

// A prefix of a header asks for more; the whole header does not depend on what follows.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto whole = anvil::wire::parse_gguf(text);
  if (whole && !whole->header && whole->need_bytes <= size) std::abort();
  const auto half = anvil::wire::parse_gguf(text.substr(0, size / 2));
  if (half && half->header) {
    if (!whole || !whole->header) std::abort();
    if (half->header->minimum_file_bytes != whole->header->minimum_file_bytes) std::abort();
  }
  if (!half && whole) std::abort();
  return 0;
}
