#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scripted/schedule.h"

namespace anvil::scripted {

// The scripted tokenizer: one token per word, words being what ASCII white space separates. The id
// follows from the word's bytes alone. It is no model's tokenizer and does not look like one.
inline constexpr int64_t kBosToken = 1;
int64_t token_of(std::string_view word);
std::vector<int64_t> tokenize(std::string_view text);

// The visible text of a stream, token by token, ready to stand in a JSON string. Immutable; any
// thread.
class TokenText {
 public:
  explicit TokenText(const Stream& stream);
  // Appends token `index`, with the blank before it where there is one.
  void append(int64_t index, std::string& out) const;
  void append(int64_t first, int64_t count, std::string& out) const;
  int64_t id(int64_t index) const;
  // Tokens of the stream's own text; 0 if it has none.
  int64_t text_tokens() const { return own_ ? static_cast<int64_t>(pieces_.size()) : 0; }

 private:
  struct Piece {
    std::string json;  // escaped
    int64_t id = 0;
  };
  std::vector<Piece> pieces_;
  bool own_ = false;   // from the schedule's `text`
  bool bare_ = false;  // no blank between tokens
};

// The bytes as they stand inside a JSON string; invalid UTF-8 is replaced.
std::string json_escaped(std::string_view text);

// `text` cut into `pieces` parts of nearly equal length, between characters; part `index`.
std::string_view piece_of(std::string_view text, int64_t pieces, int64_t index);

}  // namespace anvil::scripted
