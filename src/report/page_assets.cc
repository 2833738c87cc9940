#include "report/page_assets.h"

#include <span>

#include "base/embedded.h"
#include "base/hash.h"

namespace anvil::report {

namespace assets {
std::span<const base::EmbeddedFile> embedded_files();
}

namespace {

std::string_view file_ending(std::string_view ending) {
  for (const auto& file : assets::embedded_files())
    if (file.name.ends_with(ending)) return file.bytes;
  return {};
}

unsigned nibble(char c) {
  return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
}

std::string base64_of_hex(std::string_view hex) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t at = 0; at < hex.size(); at += 6) {
    const size_t bytes = std::min<size_t>(3, (hex.size() - at) / 2);
    unsigned group = 0;
    for (size_t i = 0; i < 6; ++i)
      group = group << 4 | (at + i < hex.size() ? nibble(hex[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i) out += i <= bytes ? kAlphabet[group >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

}  // namespace

std::string_view style_sheet() {
  return file_ending("page.css");
}

std::string_view script() {
  return file_ending("page.js");
}

std::string script_hash() {
  return base64_of_hex(base::sha256(script()));
}

}  // namespace anvil::report
