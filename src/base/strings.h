#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace anvil::base {

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string lower(std::string_view text);
bool iequals(std::string_view a, std::string_view b);
std::string replace_all(std::string text, std::string_view from, std::string_view to);

// Whole-string decimal parse; nothing on overflow, sign where none may be, or trailing bytes.
std::optional<int64_t> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);

// Position of the first byte that is not part of well-formed UTF-8, or nothing.
std::optional<size_t> first_invalid_utf8(std::string_view text);
// Invalid sequences replaced by U+FFFD, so that foreign bytes can stand in JSON.
std::string to_valid_utf8(std::string_view text);

// The candidate nearest to `word` (Damerau-Levenshtein), if near enough to be a likely typing
// error.
std::optional<std::string> did_you_mean(std::string_view word,
                                        std::span<const std::string> candidates);

// "1.4 GiB", "253 MB" style is not used: sizes are binary with one decimal, "241.4 MiB".
std::string format_bytes(uint64_t bytes);
// "850 us", "1.23 ms", "12.3 s", "3 min 20 s".
std::string format_duration(int64_t nanos);
// Shortest decimal that reads back as the same double.
std::string format_number(double value);

// A name that people chose as part of a file name: at most 60 bytes of letters, digits, ".", "_"
// and
// "-"; whatever else becomes "-".
std::string in_file_name(std::string_view name);

// A word that can be pasted into a POSIX shell.
std::string shell_quote(std::string_view word);

}  // namespace anvil::base
