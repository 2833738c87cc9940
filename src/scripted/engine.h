#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "scripted/ledger.h"
#include "scripted/plan.h"
#include "scripted/prefix_cache.h"
#include "scripted/request.h"
#include "scripted/schedule.h"
#include "scripted/tokens.h"
#include "stats/random.h"

namespace anvil::scripted {

// Something that can be told, from any thread, that a request of its got its slot.
class Starter {
 public:
  virtual ~Starter() = default;
  virtual void start(uint64_t key) = 0;
};

// Totals since the start, as /metrics shows them. Any thread.
struct Counters {
  std::atomic<int64_t> prompt_tokens{0}, cached_tokens{0}, output_tokens{0};
  std::atomic<int64_t> cache_queries{0}, cache_hits{0};
  std::atomic<int64_t> drafts{0}, draft_tokens{0}, accepted_tokens{0};
  std::array<std::atomic<int64_t>, 64> accepted_at{};
  std::atomic<int64_t> stopped{0}, length{0}, aborted{0}, failed{0};
  std::atomic<int64_t> output_events{0};
  std::atomic<int64_t> prefill_us{0}, decode_us{0};
  std::atomic<int64_t> longest{0};  // tokens of the longest request, answer included
};

// What all connections of a server share: which stream answers, queue, prefix cache, counters and
// ledger. Lifecycle: one per server. Any thread; requests are admitted one at a time.
class Engine {
 public:
  // `ledger_events` bounds what the ledger keeps.
  Engine(Schedule schedule, int64_t ledger_events);

  struct Admission {
    int stream = 0;
    Plan plan;
    bool waits = false;  // Starter::start() comes when a slot is free
  };
  // Takes a request in and fills the entry's fields that are known now. Errors: kNotFound (model),
  // kTooLarge (context).
  Result<Admission> admit(const Request& request, LedgerEntry& entry, Starter& starter,
                          uint64_t key);
  // An admitted request ended; its slot, if it had one, goes to the next.
  void leave(LedgerEntry entry, bool had_slot);
  // A request that waits is about to leave(). False if it has got a slot meanwhile, of which
  // start() has not told yet.
  bool forget(Starter& starter, uint64_t key);
  // A request that was never admitted.
  void refused(LedgerEntry entry);

  const Schedule& schedule() const { return schedule_; }
  const Stream& stream(int index) const { return schedule_.streams[static_cast<size_t>(index)]; }
  const TokenText& text(int index) const { return *texts_[static_cast<size_t>(index)]; }
  Counters& counters() { return counters_; }
  int64_t next_serial() { return serial_.fetch_add(1, std::memory_order_relaxed); }
  int64_t next_connection() { return connections_.fetch_add(1, std::memory_order_relaxed); }
  void clear_cache();
  bool healthy() const { return mono_now() >= started_ + schedule_.engine.health_after; }
  int64_t created() const { return created_; }  // seconds since the epoch

  // Finished requests so far; sums of the loops are the server's to add.
  Ledger ledger() const;
  // Prometheus text under the names of the flavour.
  std::string metrics() const;

 private:
  struct Waiting {
    Starter* starter;
    uint64_t key;
  };
  Result<int> choose(const Request& request, int64_t number);
  void keep(LedgerEntry entry);

  const Schedule schedule_;
  std::vector<std::unique_ptr<TokenText>> texts_;  // of the streams
  const Nanos started_;
  const int64_t created_;
  Counters counters_;
  std::atomic<int64_t> serial_{0}, connections_{0};

  mutable std::mutex mutex_;  // everything below
  PrefixCache cache_;
  std::vector<int64_t> met_;  // requests that each stream has answered
  int64_t admitted_ = 0, in_flight_ = 0, running_ = 0;
  std::deque<Waiting> waiting_;
  Ledger ledger_;
  int64_t ledger_room_;
};

}  // namespace anvil::scripted
