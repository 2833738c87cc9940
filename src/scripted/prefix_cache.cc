#include "scripted/prefix_cache.h"

#include <algorithm>

#include "stats/random.h"

namespace anvil::scripted {

PrefixCache::PrefixCache(int64_t block_tokens, int64_t capacity_tokens)
    : block_tokens_(std::max<int64_t>(1, block_tokens)),
      most_blocks_(static_cast<size_t>(std::max<int64_t>(1, capacity_tokens / block_tokens_))) {}

int64_t PrefixCache::visit(std::span<const int64_t> prompt) {
  const auto block = static_cast<size_t>(block_tokens_);
  const size_t blocks = prompt.size() / block;
  uint64_t chain = 0;
  int64_t cached = 0;
  bool shared = true;
  for (size_t i = 0; i < blocks; ++i) {
    for (const int64_t token : prompt.subspan(i * block, block)) {
      uint64_t state = chain ^ static_cast<uint64_t>(token);
      chain = stats::splitmix64(state);
    }
    if (!known_.insert(chain).second) {
      if (shared) cached += block_tokens_;
      continue;
    }
    shared = false;
    order_.push_back(chain);
    if (order_.size() > most_blocks_) {
      known_.erase(order_.front());
      order_.pop_front();
    }
  }
  // The last token is always computed: its output is the first answer token.
  if (cached > 0 && cached == static_cast<int64_t>(prompt.size())) cached -= block_tokens_;
  return cached;
}

void PrefixCache::clear() {
  known_.clear();
  order_.clear();
}

}  // namespace anvil::scripted
