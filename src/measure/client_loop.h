#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/files.h"
#include "evidence/request_row.h"
#include "measure/client.h"
#include "measure/recorder.h"
#include "net/http_call.h"
#include "net/socket.h"

namespace anvil::measure {

// One run() of the client: an epoll loop over `concurrency` slots, each a connection that carries
// one attempt at a time and then takes the next one. Lifecycle: construct, run(), destroy. Thread:
// the caller's, nothing is shared.
//
// Ready sockets are read in one pass, each stamped as its recv returns, and only then parsed: the
// work on one answer does not make the stamps of the others late.
class ClientLoop {
 public:
  using Finished = std::function<void(const evidence::RequestRow&)>;

  ClientLoop(const Endpoint& endpoint, const Limits& limits, std::vector<Attempt> attempts,
             int concurrency, const base::Cancel& cancel, const Finished& finished);
  std::vector<evidence::RequestRow> run();

 private:
  enum class Phase { kFree, kDialing, kSending, kReceiving };

  struct Slot {
    explicit Slot(const Limits& limits) : recorder(limits) {}

    Phase phase = Phase::kFree;
    base::Fd fd;
    uint32_t watched = 0;  // epoll events asked for; 0 = not registered
    std::unique_ptr<net::Dialer> dialer;
    Attempt attempt;
    Recorder recorder;
    std::string out;
    size_t sent = 0;
    bool reused = false;
    bool resent = false;
    Nanos started = 0;    // of the attempt
    Nanos dialed = 0;     // when dialing began
    Nanos ready = 0;      // when the connection could take the request
    Nanos last_read = 0;  // 0 before the first byte
    Nanos retry_at = 0;   // when a busy dialer tries again; 0 = not busy
  };

  // What one recv gave.
  struct Read {
    size_t slot = 0;
    uint32_t events = 0;
    bool tried = false;
    ssize_t got = 0;
    int error = 0;
    Nanos at = 0;
    size_t offset = 0;  // into the slab
  };

  struct Due {
    Nanos at = 0;  // 0 = never
    const char* limit = "";
    Nanos length = 0;
  };

  bool prepare();
  void start_next(size_t index);
  void begin_request(Slot& slot);
  void dial(size_t index);
  void dialed(size_t index, net::Dialer::State state);
  void send_more(size_t index);
  void handle(const Read& read);
  bool send_again(size_t index, const Error& error);
  void end_attempt(size_t index);
  void fail_attempt(size_t index, const Error& error);
  void refuse_all(const Error& error);
  void yield_row(evidence::RequestRow row);
  void watch(size_t index, uint32_t events);
  void drop_connection(Slot& slot);
  Due due(const Slot& slot) const;
  void expect_due(const Slot& slot);
  void check_limits(Nanos now);
  int wait_millis() const;

  const Endpoint& endpoint_;
  const Limits& limits_;
  std::deque<Attempt> waiting_;
  const base::Cancel& cancel_;
  const Finished& finished_;
  net::Url url_;
  std::shared_ptr<const std::vector<net::Address>> addresses_;
  base::Fd epoll_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<char> slab_;
  std::vector<Read> reads_;
  std::vector<evidence::RequestRow> rows_;
  size_t in_flight_ = 0;
  // No limit runs out before this moment. Limits that move later only make it early, never late.
  Nanos next_check_ = 0;
};

}  // namespace anvil::measure
