#include <string>
#include <string_view>
#include <vector>

#include "evidence/derive_parts.h"

namespace anvil::evidence {

namespace {
constexpr size_t kLongestSeparator = 3;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         static_cast<unsigned char>(c) >= 0x80;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// True if the word characters of `wanted` stand in `text` in order, case aside, with at most
// `separator` other characters between two of them, and not as a piece of a longer word.
bool stands_in(std::string_view wanted, std::string_view text, size_t separator) {
  std::string letters;
  for (const char c : wanted)
    if (is_word(c)) letters += lower(c);
  if (letters.empty()) return false;
  for (size_t start = 0; start < text.size(); ++start) {
    if (lower(text[start]) != letters[0]) continue;
    if (start > 0 && is_word(text[start - 1])) continue;
    size_t found = 1, at = start + 1, skipped = 0;
    while (found < letters.size() && at < text.size()) {
      if (lower(text[at]) == letters[found]) {
        ++found;
        skipped = 0;
      } else if (is_word(text[at]) || ++skipped > separator) {
        break;
      }
      ++at;
    }
    if (found == letters.size() && (at == text.size() || !is_word(text[at]))) return true;
  }
  return false;
}

std::vector<std::string_view> parts_of(std::string_view code) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  for (size_t i = 0; i <= code.size(); ++i)
    if (i == code.size() || !is_word(code[i])) {
      if (i > start) parts.push_back(code.substr(start, i - start));
      start = i + 1;
    }
  return parts;
}
}  // namespace

double grade_needle(const std::string& code, const std::string& answer) {
  if (code.empty()) return 0;
  if (answer.find(code) != std::string::npos) return 1;
  if (stands_in(code, answer, kLongestSeparator)) return 0.75;
  const auto parts = parts_of(code);
  size_t found = 0;
  for (const std::string_view part : parts)
    if (stands_in(part, answer, 0)) ++found;
  return parts.size() > 1 && 2 * found >= parts.size() ? 0.5 : 0;
}

}  // namespace anvil::evidence
