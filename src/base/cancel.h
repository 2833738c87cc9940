#pragma once

#include <atomic>

#include "base/files.h"
#include "base/result.h"

namespace anvil::base {

// A request to stop, shared by everything that waits. Requested from a signal handler or another
// thread; waiters poll fd() beside their own descriptors, or call requested(). Level 1 asks for an
// orderly stop; level 2 (a second request) asks to give up every grace period.
class Cancel {
 public:
  Cancel();
  void request();  // async-signal-safe; may be called any number of times
  int level() const { return level_.load(std::memory_order_relaxed); }
  bool requested() const { return level() > 0; }
  int fd() const { return event_.get(); }  // readable once requested; never drained

 private:
  std::atomic<int> level_{0};
  Fd event_;
};

// Routes SIGINT and SIGTERM to `cancel` for the rest of the process. Call once, at start-up;
// ignores SIGPIPE.
void cancel_on_signals(Cancel& cancel);

// Sleeps up to `nanos`; returns false at once when cancelled.
bool sleep_unless_cancelled(const Cancel& cancel, long long nanos);

Error cancelled_error();

}  // namespace anvil::base
