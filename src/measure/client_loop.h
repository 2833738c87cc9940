#pragma once

#include <sys/epoll.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/files.h"
#include "evidence/request_row.h"
#include "measure/agenda.h"
#include "measure/client.h"
#include "measure/deadline_heap.h"
#include "measure/finished_rows.h"
#include "measure/load_report.h"
#include "measure/recorder.h"
#include "net/connection.h"
#include "net/kernel_stamp.h"

namespace anvil::measure {

// What the loops of one run work on.
struct RunContext {
  const Endpoint& endpoint;
  const net::Url& url;
  std::shared_ptr<const net::Destination> destination;
  const Limits& limits;
  const LoadOptions& options;
  std::vector<Attempt>& attempts;  // each is touched by one loop at a time
  LoadShare& share;
  const base::Cancel& cancel;
  FinishedRows& finished;
};

// One thread of a run: an edge-triggered epoll loop over slots, each a connection that carries one
// attempt at a time. Lifecycle: prepare(), then run() with the common start, then report(). Thread:
// one, nothing but the context is shared.
//
// Ready sockets are read in one pass into one buffer, each with its stamp, and only then parsed:
// where the kernel gives no stamp, the work on one answer does not make the stamps of others late.
class ClientLoop {
 public:
  ClientLoop(const RunContext& context, size_t thread);
  // Opens what has to be open before the start.
  Result<void> prepare();
  // Returns when nothing is left to do, or when the run was stopped: attempts that were not begun
  // are then left alone.
  void run(Nanos start);
  const LoadReport& report() const { return report_; }

 private:
  enum class Phase { kFree, kDialing, kSending, kReceiving };
  static constexpr int64_t kNoAttempt = -1;

  struct Slot {
    explicit Slot(const Limits& limits) : recorder(limits) {}

    Phase phase = Phase::kFree;
    bool reused = false;
    bool resent = false;
    bool kernel_stamped = true;  // all reads of this answer
    bool spoiled = false;        // bytes came behind the end of the answer
    int descriptors = 0;         // of the connection, that epoll knows
    uint64_t seen_in_turn = 0;
    int64_t attempt = kNoAttempt;
    net::Connection connection;
    Recorder recorder;
    std::string request;
    Nanos started = 0;    // of the attempt
    Nanos dialed = 0;     // when dialing began
    Nanos ready = 0;      // when the connection could take the request
    Nanos last_read = 0;  // 0 before the first byte
    Nanos retry_at = 0;   // when a busy dialer tries again; 0 = not busy
  };

  // A slot to look at in this turn, and what a read of it gave.
  struct Look {
    uint32_t slot = 0;
    uint32_t events = 0;
    bool tried = false;
    net::Received got = {};
    size_t offset = 0;  // into the slab
    size_t room = 0;
  };

  struct Due {
    Nanos at = DeadlineHeap::kNever;
    const char* limit = "";
    Nanos length = 0;
  };

  Result<void> open_pool();
  // When the drain after the last planned moment ends; never without one.
  Nanos cut_at(Nanos start) const;
  bool stopping() const { return context_.cancel.requested() || context_.share.stopped(); }
  void turn();
  int wait(epoll_event* ready, Nanos now);
  void look(epoll_event* ready, int count);
  static void prefetch(const Slot& slot);
  void read_into_slab(Look& look, size_t used);
  void handle(const Look& look);
  void handle_free(Slot& slot, const Look& look);
  void take_bytes(const Look& look);
  void take_sealed(const Look& look, std::string_view bytes);
  void deliver(uint32_t index, std::string_view bytes, const net::Received& got);

  void start_due();
  void begin(const Agenda::Start& start);
  uint32_t free_slot();
  void open(uint32_t index);
  void settle(uint32_t index, net::Connection::State state);
  void opened(uint32_t index);
  void send_more(uint32_t index);
  bool send_again(uint32_t index, const Error& error);
  void end_attempt(uint32_t index);
  void fail_attempt(uint32_t index, const Error& error);
  void judge_status(const evidence::RequestRow& row, const Recorder& recorder, Nanos now);
  void abandon(const Error& reason);
  void drop_connection(Slot& slot);

  Due due(const Slot& slot) const;
  void expect_due(uint32_t index);
  void check_limits(Nanos now);

  evidence::RequestRow& row_of(const Slot& slot) {
    return context_.attempts[static_cast<size_t>(slot.attempt)].row;
  }

  const RunContext context_;
  const size_t thread_;
  Agenda agenda_;
  LoadReport report_;
  base::Fd epoll_;
  net::KernelClock clock_;
  std::deque<Slot> slots_;                         // never move: recorders and rows are pointed at
  std::vector<uint32_t> free_open_, free_closed_;  // the last one is taken first
  std::vector<uint32_t> again_;                    // to be read without an event
  std::vector<Look> looks_, reading_;
  std::vector<char> slab_, plain_;
  DeadlineHeap deadlines_;
  uint64_t turn_ = 0;
  size_t in_flight_ = 0;
  size_t warming_ = 0;
  Nanos wake_at_ = 0;  // when the running wait is to end without an event
  std::optional<Error> pool_error_;
};

}  // namespace anvil::measure
