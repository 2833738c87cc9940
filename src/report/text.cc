#include "report/text.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/strings.h"

namespace anvil::report {

namespace {

// Decodes one character of well-formed UTF-8 at `at` and returns its length.
size_t decode(std::string_view text, size_t at, uint32_t& code) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const uint32_t lead = byte(at);
  if (lead < 0x80) {
    code = lead;
    return 1;
  }
  if (lead < 0xE0) {
    code = (lead & 0x1F) << 6 | (byte(at + 1) & 0x3F);
    return 2;
  }
  if (lead < 0xF0) {
    code = (lead & 0x0F) << 12 | (byte(at + 1) & 0x3F) << 6 | (byte(at + 2) & 0x3F);
    return 3;
  }
  code = (lead & 0x07) << 18 | (byte(at + 1) & 0x3F) << 12 | (byte(at + 2) & 0x3F) << 6 |
         (byte(at + 3) & 0x3F);
  return 4;
}

bool changes_direction(uint32_t code) {
  return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

std::string code_point_name(uint32_t code) {
  std::array<char, 12> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), code, 16).ptr;
  std::string hex(digits.data(), end);
  for (char& c : hex)
    if (c >= 'a') c = static_cast<char>(c - 'a' + 'A');
  while (hex.size() < 4) hex.insert(hex.begin(), '0');
  return "[U+" + hex + "]";
}

std::string with_separators(std::string digits) {
  const size_t start = !digits.empty() && digits[0] == '-' ? 1 : 0;
  for (size_t at = digits.size(); at > start + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string flattened(std::string_view text) {
  std::string out = visible(text);
  for (char& c : out)
    if (c == '\n' || c == '\t') c = ' ';
  return out;
}

}  // namespace

std::string visible(std::string_view text) {
  const std::string valid = base::to_valid_utf8(text);
  std::string out;
  out.reserve(valid.size());
  for (size_t at = 0; at < valid.size();) {
    uint32_t code = 0;
    const size_t size = decode(valid, at, code);
    if (code == '\r' && at + 1 < valid.size() && valid[at + 1] == '\n') {
      // A CRLF line end reads as a line end.
    } else if (code < 0x20 && code != '\n' && code != '\t') {
      out += "\xE2\x90";
      out += static_cast<char>(0x80 + code);  // U+2400 + code: the control pictures
    } else if (code == 0x7F) {
      out += "\xE2\x90\xA1";
    } else if ((code >= 0x80 && code < 0xA0) || changes_direction(code)) {
      out += code_point_name(code);
    } else {
      out.append(valid, at, size);
    }
    at += size;
  }
  return out;
}

std::string escape_html(std::string_view text) {
  const std::string safe = visible(text);
  std::string out;
  out.reserve(safe.size() + safe.size() / 16);
  for (const char c : safe) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string escape_markdown(std::string_view text) {
  const std::string line = flattened(text);
  std::string out;
  for (const char c : line) {
    // A zero-width space keeps an @ from naming a person.
    if (!out.empty() && out.back() == '@' && std::isalnum(static_cast<unsigned char>(c)))
      out += "\xE2\x80\x8B";
    switch (c) {
      case '<':
        out += "&lt;";
        continue;
      case '>':
        out += "&gt;";
        continue;
      case '&':
        out += "&amp;";
        continue;
      case '\\':
      case '`':
      case '*':
      case '_':
      case '{':
      case '}':
      case '[':
      case ']':
      case '#':
      case '|':
      case '~':
      case '!':
        out += '\\';
        break;
      default:
        break;
    }
    out += c;
  }
  return out;
}

std::string one_line(std::string_view text) {
  return flattened(text);
}

std::string_view cut_bytes(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit;
  while (end > 0 && limit - end < 4 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return text.substr(0, end);
}

size_t length(std::string_view text) {
  size_t n = 0;
  for (const char c : text)
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++n;
  return n;
}

std::string ellipsis(std::string_view text, size_t limit) {
  if (length(text) <= limit) return std::string(text);
  size_t at = 0, n = 0;
  for (; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) continue;
    if (++n == limit) break;
  }
  return std::string(text.substr(0, at)) + "\xE2\x80\xA6";
}

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  std::array<char, 400> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::fixed, decimals)
                       .ptr;
  std::string out(buffer.data(), end);
  if (out[0] == '-' && out.find_first_not_of("-0.") == std::string::npos) out.erase(0, 1);
  return out;
}

std::string figure(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value) || size == 0) return fixed(value, 0);
  if (size >= 1e15 || size < 1e-6) return base::format_number(value);
  if (size >= 99.95) return with_separators(fixed(value, 0));
  if (size >= 9.995) return fixed(value, 1);
  if (size >= 0.9995) return fixed(value, 2);
  return fixed(value, 2 - static_cast<int>(std::floor(std::log10(size))));
}

std::string count(int64_t value) {
  return with_separators(std::to_string(value));
}

std::string milliseconds(double value) {
  const double size = std::abs(value);
  if (value != 0 && size < 0.9995) return figure(value * 1e3) + " us";
  if (size < 999.5) return figure(value) + " ms";
  return seconds(value / 1e3);
}

std::string seconds(double value) {
  if (std::abs(value) < 0.9995) return milliseconds(value * 1e3);
  if (std::abs(value) < 99.95) return figure(value) + " s";
  const auto whole = static_cast<int64_t>(std::llround(value));
  if (whole < 3600) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  return std::to_string(whole / 3600) + " h " + std::to_string(whole % 3600 / 60) + " min";
}

std::string plain(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
  if (value.is_number()) return base::format_number(value.get<double>());
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_null()) return "none";
  return base::canonical(value);
}

std::string gate_value(const Json& value, const Json& other) {
  if (!value.is_number_float()) return plain(value);
  const double number = value.get<double>();
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                 std::chars_format::general, 5)
                       .ptr;
  const std::string shorter(buffer.data(), end);
  const auto rounded = base::parse_double(shorter);
  const bool hides = rounded && other.is_number() && *rounded == other.get<double>() &&
                     number != other.get<double>();
  if (hides || shorter.find('e') != std::string::npos) return base::format_number(number);
  return shorter;
}

}  // namespace anvil::report
