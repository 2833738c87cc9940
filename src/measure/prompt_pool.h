#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "measure/prompts.h"

namespace anvil::measure {

// A text whose nonces are exchanged per run: what is hashed is the text without a salt, what is
// sent has the run's.
struct PlannedText {
  struct Nonce {
    size_t at = 0;  // of its 12 digits
    std::string stream;
  };
  std::string text;  // with the nonces of the empty salt
  std::vector<Nonce> nonces;
};
std::string salted(const PlannedText& planned, uint64_t seed, std::string_view salt);
// `front`, then `back` with a line break between them, nonces kept.
PlannedText joined(const PlannedText& front, const PlannedText& back);

// One prompt that a plan wants. Equal streams give equal prompts.
struct PromptWish {
  std::string stream;
  int64_t tokens = 0;  // of the whole request
  int beginning = -1;  // index of what it shares with others, -1: nothing
};

// Makes the prompts of a lane with exact length in a bounded number of counter calls.
//
// Up to kMostExact prompts are searched one by one (about three calls each). Beyond that they come
// from a pool of at most kMostPooled texts of exact length: prompts of equal length take turns with
// the texts of that length under nonces of their own, and where there are more lengths than
// texts, a text that is a little too short is filled up with common words of one token each (which
// is tried once; a tokenizer that sees them otherwise gets every length searched). The engine's
// count on every row proves the lengths either way.
//
// Lifecycle: one per lane. Thread: the owner's.
class PromptPool {
 public:
  static constexpr size_t kMostExact = 200;
  static constexpr size_t kMostPooled = 128;

  // `question` stands last in every prompt. `made` is called with the number of texts that were
  // searched so far.
  PromptPool(PromptBuilder& builder, uint64_t seed, std::string salt, std::string question,
             std::function<void(int)> made = {});

  // A text of about `tokens` tokens that stands in front of others, with a nonce of its own. With
  // a beginning, prompts are searched behind it; all beginnings must have the same length then.
  Result<PlannedText> beginning(const std::string& stream, int64_t tokens);

  // In the order of the wishes. `beginnings` are what wishes refer to.
  Result<std::vector<PlannedText>> make(const std::vector<PromptWish>& wishes,
                                        const std::vector<PlannedText>& beginnings);

  int counter_calls() const { return calls_; }
  // {"method": "exact" | "pool", "texts", "filled_up": prompts that were made longer by words}
  Json describe() const;

 private:
  // The text behind its beginning.
  Result<PlannedText> exact(const std::string& stream, int64_t tokens, const PlannedText* beginning,
                            const std::string& question);
  Result<std::vector<PlannedText>> pooled(const std::vector<PromptWish>& wishes,
                                          const std::vector<PlannedText>& beginnings);
  Result<bool> words_are_tokens(const PlannedText& body, int64_t tokens,
                                const PlannedText* beginning);
  PlannedText lengthened(const PlannedText& body, int64_t words) const;

  PromptBuilder& builder_;
  uint64_t seed_;
  std::string salt_, question_;
  std::function<void(int)> made_;
  int calls_ = 0, texts_ = 0;
  int64_t filled_up_ = 0;
  bool pooled_ = false;
};

}  // namespace anvil::measure
