#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace anvil::measure {

// How many prompt tokens the request has that carries `text` as its user message (or plain prompt):
// template and BOS included. A tokenizer endpoint, or a one-token request whose usage is read. May
// be any function of the text; it need not be monotone.
using TokenCounter = std::function<Result<int64_t>(const std::string& text)>;

// A sentence to be found again, at a fraction of the filler: 0 = first, 1 = last.
struct Needle {
  double depth = 0.5;
  std::string sentence;
};

// What a prompt must be. Equal specs give equal prompts.
struct PromptSpec {
  int64_t target_tokens = 0;
  uint64_t seed = 0;
  std::string stream;         // names the prompt, e.g. "chat-4k/3": filler and nonce differ by it
  std::string salt;           // enters the nonce only: run id, so that a second run finds no cache
  std::string shared_prefix;  // stands first, verbatim; the nonce follows it
  std::vector<Needle> needles;
  std::string question;  // stands last; may be empty
  int64_t tolerance_tokens = 2;
  double tolerance_percent = 0.1;
  int max_counter_calls = 24;
};

struct ExactPrompt {
  std::string text;
  int64_t tokens = 0;     // as the counter said of the text under its probe nonce
  int64_t deviation = 0;  // tokens - target
  int counter_calls = 0;
};

// The larger of the two allowances, in tokens.
int64_t tolerance(const PromptSpec& spec);

// Builds texts of an exact number of request tokens: a nonce of 12 digits, filler sentences that
// never repeat in a pattern, needles at their depths, the question. The length is found by
// interpolation over filler words, then by single-token pieces, with a bounded number of counter
// calls.
//
// The counter sees every text under another nonce of the same shape: where counting means running
// the request, nothing of the measured prompt enters the engine's prefix cache. Digits are
// tokenised by position in all known tokenizers, so the count holds; the row's own usage proves it.
//
// Lifecycle: one per counter; it remembers tokens per word, so later prompts need about three
// calls. Errors: the counter's own; kInvalidInput when the fixed parts alone exceed the target;
// kMismatch when no text within the tolerance was found. Thread: the owner's.
class PromptBuilder {
 public:
  explicit PromptBuilder(TokenCounter counter) : counter_(std::move(counter)) {}
  Result<ExactPrompt> build(const PromptSpec& spec);
  // What the counter says of a text.
  Result<int64_t> count(const std::string& text) const { return counter_(text); }

 private:
  TokenCounter counter_;
  double tokens_per_word_ = 1.35;
};

// 12 digits out of seed, stream and salt.
std::string nonce(uint64_t seed, std::string_view stream, std::string_view salt);

// A seed for one `use` of a stream: streams and uses do not disturb each other.
uint64_t derived_seed(uint64_t seed, std::string_view stream, std::string_view use);

// " the of and ...": words, each with a blank before it, of one token each in the vocabularies that
// we know.
std::string single_token_words(int64_t count);

// Endless English filler, sentence after sentence, from a seed.
class Filler {
 public:
  explicit Filler(uint64_t seed) : state_(seed) {}
  std::string sentence();  // with its full stop

 private:
  uint64_t next();
  std::string_view pick(const std::vector<std::string_view>& words);

  uint64_t state_;
};

}  // namespace anvil::measure
