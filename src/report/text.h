#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

namespace anvil::report {

// Foreign text made harmless for every format: invalid UTF-8 becomes U+FFFD, control characters
// (but line feed and tab) their visible pictures, direction-changing characters their code point in
// brackets.
std::string visible(std::string_view text);
// visible(), with the five HTML characters as entities. Safe in element content and in quoted
// attributes.
std::string escape_html(std::string_view text);
// visible(), on one line, with the characters that Markdown reads as markup escaped; safe in a
// table cell.
std::string escape_markdown(std::string_view text);
// visible(), on one line: foreign text cannot move the cursor or change colours.
std::string one_line(std::string_view text);

// At most `limit` bytes of `text`, ending at a character.
std::string_view cut_bytes(std::string_view text, size_t limit);
// At most `limit` characters; an ellipsis stands for the rest.
std::string ellipsis(std::string_view text, size_t limit);
// Characters (code points) in well-formed UTF-8.
size_t length(std::string_view text);

// "3.14": exactly `decimals` decimals, never "-0".
std::string fixed(double value, int decimals);
// Three significant digits for reading: "0.0123", "1.23", "12.3", "123", "1,234", "12,345".
std::string figure(double value);
// "12,345".
std::string count(int64_t value);
// "850 us", "31.2 ms", "1.23 s", "3 min 20 s".
std::string milliseconds(double value);
std::string seconds(double value);
// A value of a gate: enough digits that it can be told apart from `other`.
std::string gate_value(const Json& value, const Json& other);
// A scalar as a person would write it; objects and arrays as compact JSON; null as "not observed"
// is the caller's.
std::string plain(const Json& value);

}  // namespace anvil::report
