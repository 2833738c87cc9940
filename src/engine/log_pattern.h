#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace anvil::engine {

// A literal pattern for one log line, as the interface tables write it:
//
//   "Model loading took {gib} GiB memory and {seconds} seconds"
//
// Text stands for itself and may begin anywhere in the line, so that prefixes like
// "(EngineCore pid=357) INFO 07-29 14:43:33 [kv_cache_utils.py:2181] " need no mention.
//   {name}       a number: digits with "," between groups, a sign, a fraction, an exponent
//   {name:word}  text without white space, as short as possible, at least one byte
//   {name:rest}  what is left of the line, trimmed; only at the end
//   *            any text, as short as possible, also none
//   {{ }} {*}    the characters "{", "}", "*" themselves
// Immutable; match() may be called from any thread.
class LogPattern {
 public:
  // The error says what is wrong with the pattern.
  static Result<LogPattern> parse(std::string_view pattern);

  // The captured values by name (numbers as numbers), or nothing when the line does not match.
  std::optional<Json> match(std::string_view line) const;
  // The same without building the values.
  bool matches(std::string_view line) const;
  const std::string& text() const { return text_; }

 private:
  struct Piece {
    enum class Kind { kLiteral, kNumber, kWord, kRest };
    Kind kind = Kind::kLiteral;
    std::string text;  // the literal, or the name of the capture
  };
  struct Capture {
    const Piece* piece;
    std::string_view text;
  };
  using Segment = std::vector<Piece>;  // what stands between two "*"

  static std::optional<size_t> match_here(const Segment& segment, size_t piece,
                                          std::string_view line, size_t at,
                                          std::vector<Capture>& captures);
  static std::optional<size_t> find(const Segment& segment, std::string_view line, size_t from,
                                    std::vector<Capture>& captures);
  bool run(std::string_view line, std::vector<Capture>& captures) const;

  std::string text_;
  std::vector<Segment> segments_;
};

}  // namespace anvil::engine
