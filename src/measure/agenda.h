#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"
#include "measure/client.h"

namespace anvil::measure {

// The links between the attempts of a run, checked: which follow on which.
class AttemptLinks {
 public:
  static constexpr int32_t kNone = -1;
  // kInvalidInput when an attempt follows one that is not before it in the list.
  static Result<AttemptLinks> build(const std::vector<Attempt>& attempts);

  int32_t first_follower(size_t index) const { return first_[index]; }
  int32_t next_follower(size_t follower) const { return next_[follower]; }

 private:
  std::vector<int32_t> first_, next_;
};

// What the threads of one run share: the places in flight, the attempts that may start at any time,
// and the reasons to start nothing. Thread: any.
class LoadShare {
 public:
  LoadShare(const std::vector<Attempt>& attempts, AttemptLinks links, const LoadOptions& options,
            size_t threads);

  const std::vector<Attempt>& attempts() const { return attempts_; }
  const AttemptLinks& links() const { return links_; }
  // The attempts that are due at a time of their own, for one thread: every n-th of them.
  std::vector<uint32_t> dated_of(size_t thread) const;
  // How many places a thread may fill with attempts that have no time of their own.
  int share_of(size_t thread) const;

  // Takes a place in flight, or notes that the thread waits for one.
  bool take_place(size_t thread);
  void leave_place(size_t thread);
  std::optional<uint32_t> take_undated();
  bool has_undated() const { return next_undated_.load() < undated_.size(); }

  // Readable when the thread has to look again.
  int wake_fd(size_t thread) const { return wakers_[thread].event.get(); }
  void drain_wake(size_t thread);

  // Nothing starts before this moment.
  Nanos held_until() const { return held_until_.load(std::memory_order_relaxed); }
  void hold(Nanos now, Nanos until);
  Nanos held_in_all() const;

  // Ends the run for all threads; the first reason stays.
  void stop(Error reason);
  bool stopped() const { return stopped_.load(); }
  Error stop_reason() const;

  // An answer that was not an error has come: the key is good.
  void accept_key() { key_accepted_.store(true, std::memory_order_relaxed); }
  bool key_accepted() const { return key_accepted_.load(std::memory_order_relaxed); }

 private:
  struct Waker {
    base::Fd event;
    std::atomic<bool> waits{false};
  };
  void wake(Waker& waker);

  const std::vector<Attempt>& attempts_;
  AttemptLinks links_;
  int limit_;
  size_t threads_;
  std::vector<uint32_t> undated_;
  std::atomic<size_t> next_undated_{0};
  std::atomic<int> in_flight_{0};
  std::atomic<Nanos> held_until_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<bool> key_accepted_{false};
  std::unique_ptr<Waker[]> wakers_;
  mutable std::mutex mutex_;
  std::optional<Error> reason_;
  Nanos held_in_all_ = 0;
};

// Which attempt one thread starts next, and when. Lifecycle: begin() with the run's start, then
// take() whenever there may be something to start. Thread: the owner's.
class Agenda {
 public:
  // What to start, and since when it has been due.
  struct Start {
    uint32_t index = 0;
    Nanos intended = 0;
    bool dated = false;   // it had a time of its own
    bool waited = false;  // for a place or because of a hold: its delay is not the client's
  };

  Agenda(LoadShare& share, size_t thread);
  void begin(Nanos start);
  // Takes a place as well; every Start must be given back with ended().
  std::optional<Start> take(Nanos now);
  // `at`: when the attempt's last bytes came, or when it failed.
  void ended(uint32_t index, Nanos at);

  // The next moment at which take() could give something that it does not give now.
  Nanos next_due(Nanos now) const;
  // Nothing left to start and nothing in flight here: followers can come no more.
  bool idle() const;
  uint64_t limit_hits() const { return limit_hits_; }

 private:
  struct Entry {
    Nanos due = 0;
    uint32_t index = 0;
    bool waited = false;

    bool operator>(const Entry& other) const {
      return due != other.due ? due > other.due : index > other.index;
    }
  };
  void schedule(Nanos due, uint32_t index);
  void collect_due(Nanos now);

  LoadShare& share_;
  size_t thread_;
  int undated_share_;
  Nanos start_ = 0;
  std::vector<Entry> dated_;  // a heap, the earliest in front
  std::deque<Entry> ready_;   // due, in order
  size_t counted_ = 0;        // of ready_, from the front: counted as limit hits
  int in_flight_ = 0;
  uint64_t limit_hits_ = 0;
};

}  // namespace anvil::measure
