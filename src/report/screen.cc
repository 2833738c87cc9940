#include "report/screen.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "report/text.h"

namespace anvil::report {

Ink ink_of(Tone tone) {
  return tone == Tone::kGood    ? Ink::kGood
         : tone == Tone::kWatch ? Ink::kWatch
         : tone == Tone::kBad   ? Ink::kBad
                                : Ink::kPlain;
}

Screen::Screen(bool colour, int columns)
    : colour_(colour), columns_(static_cast<size_t>(std::clamp(columns, 40, 400))) {}

std::string Screen::ink(std::string_view words, Ink ink) const {
  if (!colour_ || ink == Ink::kPlain || words.empty()) return std::string(words);
  constexpr std::array<std::string_view, 6> kCodes = {"",         "\x1b[1m",  "\x1b[2m",
                                                      "\x1b[32m", "\x1b[33m", "\x1b[1;31m"};
  return std::string(kCodes[static_cast<size_t>(ink)]) + std::string(words) + "\x1b[0m";
}

void Screen::heading(std::string_view words) {
  blank();
  out_ += ink(ellipsis(words, columns_), Ink::kBold) + "\n";
}

void Screen::line(std::string_view words, Ink how) {
  out_ += ink(ellipsis(words, columns_), how) + "\n";
}

void Screen::wrapped(std::string_view words, size_t hang, Ink how) {
  const size_t indent = std::min(words.find_first_not_of(' '), words.size());
  words.remove_prefix(indent);
  std::string current(indent, ' ');
  bool fresh = true;  // nothing but the indent stands on the line
  const auto flush = [&] {
    out_ += ink(ellipsis(current, columns_), how) + "\n";
    current.assign(hang, ' ');
    fresh = true;
  };
  for (const auto word : base::split(words, ' ')) {
    if (!fresh && length(current) + 1 + length(word) > columns_) flush();
    if (!fresh) current += ' ';
    current += word;
    fresh = false;
  }
  if (!fresh) flush();
}

std::string left(std::string_view words, size_t width) {
  std::string out = ellipsis(words, width);
  out.append(width - std::min(width, length(out)), ' ');
  return out;
}

std::string right(std::string_view words, size_t width) {
  const std::string out = ellipsis(words, width);
  return std::string(width - std::min(width, length(out)), ' ') + out;
}

}  // namespace anvil::report
