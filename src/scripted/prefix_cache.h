#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <unordered_set>

namespace anvil::scripted {

// Remembers the beginnings of prompts in whole blocks, as engines' prefix caches do. A block is
// known by the hash of everything up to its end. Not thread-safe.
class PrefixCache {
 public:
  PrefixCache(int64_t block_tokens, int64_t capacity_tokens);
  // How many tokens at the beginning are known, always fewer than there are, and remembers the
  // prompt.
  int64_t visit(std::span<const int64_t> prompt);
  void clear();
  int64_t tokens() const { return static_cast<int64_t>(known_.size()) * block_tokens_; }

 private:
  int64_t block_tokens_;
  size_t most_blocks_;
  std::unordered_set<uint64_t> known_;
  std::deque<uint64_t> order_;  // of arrival
};

}  // namespace anvil::scripted
