#include "engine/log_pattern.h"

#include <algorithm>

#include "base/strings.h"

namespace anvil::engine {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z');
  });
}

// Length of the number at the start of `text`, 0 if there is none. A comma belongs to it only when
// three digits follow.
size_t number_length(std::string_view text) {
  size_t at = 0;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  const size_t digits = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  if (at == digits) return 0;
  while (at + 3 < text.size() && text[at] == ',' && is_digit(text[at + 1]) &&
         is_digit(text[at + 2]) && is_digit(text[at + 3]) &&
         (at + 4 == text.size() || !is_digit(text[at + 4]))) {
    at += 4;
  }
  if (at + 1 < text.size() && text[at] == '.' && is_digit(text[at + 1])) {
    ++at;
    while (at < text.size() && is_digit(text[at])) ++at;
  }
  if (at + 1 < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    size_t exponent = at + 1;
    if (text[exponent] == '-' || text[exponent] == '+') ++exponent;
    if (exponent < text.size() && is_digit(text[exponent])) {
      at = exponent;
      while (at < text.size() && is_digit(text[at])) ++at;
    }
  }
  return at;
}

Json number_value(std::string_view text) {
  const std::string plain = base::replace_all(std::string(text), ",", "");
  const std::string_view unsigned_part =
      plain.starts_with('+') ? std::string_view(plain).substr(1) : std::string_view(plain);
  if (const auto integer = base::parse_int(unsigned_part)) return *integer;
  if (const auto decimal = base::parse_double(unsigned_part)) return *decimal;
  return plain;
}

}  // namespace

Result<LogPattern> LogPattern::parse(std::string_view pattern) {
  const auto wrong = [&](std::string what) {
    return fail(Kind::kInvalidInput, Side::kClient,
                "log pattern \"" + std::string(pattern) + "\": " + std::move(what));
  };
  LogPattern result;
  result.text_ = pattern;
  Segment segment;
  std::string literal;
  const auto flush_literal = [&] {
    if (!literal.empty()) segment.push_back({Piece::Kind::kLiteral, std::move(literal)});
    literal.clear();
  };
  bool closed = false;  // a {x:rest} was seen: nothing may follow
  for (size_t at = 0; at < pattern.size();) {
    if (closed) return wrong("nothing may follow a capture of the rest");
    const char c = pattern[at];
    if (pattern.substr(at).starts_with("{{") || pattern.substr(at).starts_with("}}")) {
      literal += c;
      at += 2;
    } else if (pattern.substr(at).starts_with("{*}")) {
      literal += '*';
      at += 3;
    } else if (c == '*') {
      flush_literal();
      result.segments_.push_back(std::move(segment));
      segment.clear();
      ++at;
    } else if (c == '{') {
      const size_t end = pattern.find('}', at);
      if (end == std::string_view::npos) return wrong("a \"{\" has no \"}\"");
      const std::string_view inside = pattern.substr(at + 1, end - at - 1);
      const size_t colon = inside.find(':');
      const std::string_view name = inside.substr(0, colon);
      const std::string_view kind =
          colon == std::string_view::npos ? std::string_view() : inside.substr(colon + 1);
      if (!is_name(name)) return wrong("a capture's name is lower-case letters, digits and \"_\"");
      flush_literal();
      if (kind.empty()) {
        segment.push_back({Piece::Kind::kNumber, std::string(name)});
      } else if (kind == "word") {
        segment.push_back({Piece::Kind::kWord, std::string(name)});
      } else if (kind == "rest") {
        segment.push_back({Piece::Kind::kRest, std::string(name)});
        closed = true;
      } else {
        return wrong("a capture is {name}, {name:word} or {name:rest}");
      }
      at = end + 1;
    } else if (c == '}') {
      return wrong("a single \"}\"; write \"}}\" for the character");
    } else {
      literal += c;
      ++at;
    }
  }
  flush_literal();
  result.segments_.push_back(std::move(segment));
  const bool has_literal =
      std::any_of(result.segments_.begin(), result.segments_.end(), [](const Segment& one) {
        return std::any_of(one.begin(), one.end(), [](const Piece& piece) {
          return piece.kind == Piece::Kind::kLiteral && !base::trim(piece.text).empty();
        });
      });
  if (!has_literal) return wrong("it has no literal text, so it would match everything");
  return result;
}

// The end of the match of `segment[piece...]` at exactly `at`.
std::optional<size_t> LogPattern::match_here(const Segment& segment, size_t piece,
                                             std::string_view line, size_t at,
                                             std::vector<Capture>& captures) {
  if (piece == segment.size()) return at;
  const Piece& current = segment[piece];
  switch (current.kind) {
    case Piece::Kind::kLiteral:
      if (!line.substr(at).starts_with(current.text)) return std::nullopt;
      return match_here(segment, piece + 1, line, at + current.text.size(), captures);
    case Piece::Kind::kNumber: {
      if (piece == 0 && at > 0 && (is_digit(line[at - 1]) || line[at - 1] == '.')) {
        return std::nullopt;
      }
      const size_t length = number_length(line.substr(at));
      if (length == 0) return std::nullopt;
      captures.push_back({&current, line.substr(at, length)});
      const auto end = match_here(segment, piece + 1, line, at + length, captures);
      if (!end) captures.pop_back();
      return end;
    }
    case Piece::Kind::kWord: {
      const bool last = piece + 1 == segment.size();
      for (size_t length = 1; at + length <= line.size(); ++length) {
        if (is_space(line[at + length - 1])) return std::nullopt;
        // At the end of a segment the word goes on to the next white space.
        if (last && at + length < line.size() && !is_space(line[at + length])) continue;
        captures.push_back({&current, line.substr(at, length)});
        if (const auto end = match_here(segment, piece + 1, line, at + length, captures)) {
          return end;
        }
        captures.pop_back();
      }
      return std::nullopt;
    }
    case Piece::Kind::kRest:
      captures.push_back({&current, base::trim(line.substr(at))});
      return line.size();
  }
  return std::nullopt;
}

// The end of the first match of a segment at or after `from`.
std::optional<size_t> LogPattern::find(const Segment& segment, std::string_view line, size_t from,
                                       std::vector<Capture>& captures) {
  if (segment.empty()) return from;
  for (size_t at = from; at <= line.size(); ++at) {
    if (segment[0].kind == Piece::Kind::kLiteral) {
      at = line.find(segment[0].text, at);
      if (at == std::string_view::npos) return std::nullopt;
    }
    if (const auto end = match_here(segment, 0, line, at, captures)) return end;
  }
  return std::nullopt;
}

// Every segment at its first possible place: as "*" takes any text, an earlier place of one segment
// never makes a later one impossible, so no segment has to be tried twice.
bool LogPattern::run(std::string_view line, std::vector<Capture>& captures) const {
  size_t at = 0;
  for (const Segment& segment : segments_) {
    const auto end = find(segment, line, at, captures);
    if (!end) return false;
    at = *end;
  }
  return true;
}

bool LogPattern::matches(std::string_view line) const {
  std::vector<Capture> captures;
  return run(line, captures);
}

std::optional<Json> LogPattern::match(std::string_view line) const {
  std::vector<Capture> captures;
  if (!run(line, captures)) return std::nullopt;
  Json values = Json::object();
  for (const Capture& capture : captures) {
    values[capture.piece->text] = capture.piece->kind == Piece::Kind::kNumber
                                      ? number_value(capture.text)
                                      : Json(base::to_valid_utf8(capture.text));
  }
  return values;
}

}  // namespace anvil::engine
