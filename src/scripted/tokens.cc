#include "scripted/tokens.h"

#include <array>

#include "base/json.h"

namespace anvil::scripted {

namespace {

constexpr int64_t kFirstWordToken = 16;  // ids below are marks
constexpr uint64_t kWordTokens = 0x7fffffff - kFirstWordToken;

constexpr std::array<std::string_view, 32> kWords = {
    "scripted", "answer", "with",  "a",     "fixed",  "order", "of",   "plain",
    "words",    "sent",   "at",    "known", "times",  "by",    "an",   "engine",
    "that",     "only",   "plays", "back",  "what",   "its",   "file", "says",
    "and",      "keeps",  "one",   "exact", "ledger", "for",   "each", "event"};

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// Calls f(blank, word) for every word; `blank` is the white space before it.
template <class F>
void each_word(std::string_view text, F f) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t blank = at;
    while (at < text.size() && is_space(text[at])) ++at;
    const size_t word = at;
    while (at < text.size() && !is_space(text[at])) ++at;
    f(text.substr(blank, word - blank), text.substr(word, at - word));
  }
}

}  // namespace

int64_t token_of(std::string_view word) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : word) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return kFirstWordToken + static_cast<int64_t>((hash ^ (hash >> 32)) % kWordTokens);
}

std::vector<int64_t> tokenize(std::string_view text) {
  std::vector<int64_t> out;
  each_word(text, [&](std::string_view, std::string_view word) {
    if (!word.empty()) out.push_back(token_of(word));
  });
  return out;
}

TokenText::TokenText(const Stream& stream) {
  if (stream.token_text) {
    pieces_.push_back({json_escaped(*stream.token_text), token_of(*stream.token_text)});
    bare_ = true;
  } else if (stream.text) {
    own_ = true;
    each_word(*stream.text, [&](std::string_view blank, std::string_view word) {
      if (word.empty() && !pieces_.empty())
        pieces_.back().json += json_escaped(blank);
      else
        pieces_.push_back({json_escaped(blank) + json_escaped(word), token_of(word)});
    });
  } else {
    for (const std::string_view word : kWords)
      pieces_.push_back({" " + std::string(word), token_of(word)});
  }
}

void TokenText::append(int64_t index, std::string& out) const {
  if (pieces_.empty()) return;
  const auto count = static_cast<int64_t>(pieces_.size());
  const std::string_view json = pieces_[static_cast<size_t>(index % count)].json;
  // Built-in words have their blank before them, except at the beginning; a text of the schedule
  // that is played again needs one between its end and its beginning.
  const bool built_in = !own_ && !bare_;
  if (own_ && index > 0 && index % count == 0) out += ' ';
  out += built_in && index == 0 ? json.substr(1) : json;
}

void TokenText::append(int64_t first, int64_t count, std::string& out) const {
  for (int64_t i = 0; i < count; ++i) append(first + i, out);
}

int64_t TokenText::id(int64_t index) const {
  return pieces_.empty() ? 0 : pieces_[static_cast<size_t>(index) % pieces_.size()].id;
}

std::string json_escaped(std::string_view text) {
  const std::string quoted = base::canonical(Json(std::string(text)));
  return quoted.substr(1, quoted.size() - 2);
}

std::string_view piece_of(std::string_view text, int64_t pieces, int64_t index) {
  const auto cut = [&](int64_t i) {
    auto at = text.size() * static_cast<size_t>(i) / static_cast<size_t>(pieces);
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
    return at;
  };
  const size_t begin = cut(index);
  return text.substr(begin, cut(index + 1) - begin);
}

}  // namespace anvil::scripted
