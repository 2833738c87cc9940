#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace anvil::measure {

// Hands finished attempts from the threads that measure to the one that records, so that recording
// never delays a measurement. Thread: any.
class FinishedRows {
 public:
  struct Item {
    uint32_t index = 0;  // of the attempt; its row is final
    Nanos started = 0, ended = 0;
  };

  explicit FinishedRows(size_t threads) : running_(threads) {}

  void push(Item item) {
    const std::lock_guard lock(mutex_);
    items_.push_back(item);
    changed_.notify_one();
  }
  void thread_ended() {
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_one();
  }
  // Waits for items and swaps them into `out`. False when there are none and never will be.
  bool take(std::vector<Item>& out) {
    out.clear();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !items_.empty() || running_ == 0; });
    out.swap(items_);
    return !out.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Item> items_;
  size_t running_;
};

}  // namespace anvil::measure
