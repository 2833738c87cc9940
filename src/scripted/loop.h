#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"
#include "scripted/connection.h"
#include "scripted/engine.h"
#include "scripted/ledger.h"
#include "scripted/routes.h"
#include "scripted/transport.h"

namespace anvil::scripted {

// One thread with its connections: reads requests, writes every event at its time.
//
// Time: every step is due at an absolute moment; the thread sleeps in epoll until the next one,
// less the spin time, and then looks at the clock without sleeping.
//
// Lifecycle: start(), then connections through adopt(); stop() ends every answer and joins. Public
// functions: any thread.
class Loop : public Starter {
 public:
  Loop(Engine& engine, std::shared_ptr<const TlsIdentity> tls, Nanos spin);
  ~Loop() override;

  // The first loop also gets the listening socket; `accepted` takes every new connection.
  Result<void> start(int listener, std::function<void(base::Fd)> accepted);
  void stop();

  void adopt(base::Fd fd);
  void start(uint64_t key) override;
  // What this loop adds to the sums of a ledger. Whatever was written before the call is in it.
  void add_sums(Ledger& ledger);

 private:
  struct Timer {
    Nanos due;
    uint64_t key;
    bool operator<(const Timer& other) const { return due > other.due; }  // for a heap by due
  };

  void run();
  void call(std::function<void()> task);
  void take_inbox();
  int wait(std::vector<epoll_event>& events);
  void accept_all();
  void open(base::Fd fd);
  Connection* find(uint64_t key);
  void set_timer(Connection& connection, Nanos due);
  void fire_timers();
  void watch(Connection& connection, bool writing);
  void close(Connection& connection);

  // Reading (loop_read.cc). Those that return bool say whether the connection is still there.
  bool on_readable(Connection& connection);
  bool take_input(Connection& connection, Nanos at);
  bool take_head(Connection& connection);
  bool take_body(Connection& connection, Nanos at);
  bool answer(Connection& connection, std::string_view body, Nanos at);
  bool generate(Connection& connection, Surface surface, std::string_view body, std::string id,
                Nanos at);
  bool reply(Connection& connection, const Reply& what, std::string_view id, bool keep_alive);
  void begin_answer(Connection& connection, Nanos start);

  // Writing (loop_write.cc).
  bool on_writable(Connection& connection);
  bool take_step(Connection& connection, Nanos now);
  bool emit(Connection& connection, const Step& step, Nanos due);
  bool emit_whole(Connection& connection, Nanos due);
  bool emit_status(Connection& connection, Nanos due);
  bool emit_fault(Connection& connection, Nanos due);
  bool release(Connection& connection, size_t bytes, Nanos due, bool last);
  bool release_pieces(Connection& connection, Nanos due);
  bool after_step(Connection& connection);
  bool send_block(Connection& connection, std::string_view raw, Nanos begin);
  void settle(Connection& connection, Nanos begin, Nanos end);
  void count(const Step& step);
  size_t record(Exchange& exchange, StepKind kind, Nanos due, uint32_t tokens, size_t bytes);
  bool finish(Connection& connection, Ending ending);

  Engine& engine_;
  std::shared_ptr<const TlsIdentity> tls_;
  const Nanos spin_;
  base::Fd epoll_, wake_, reserve_;
  int listener_ = -1;
  std::function<void(base::Fd)> accepted_;
  std::thread thread_;

  std::mutex mutex_;
  std::vector<std::function<void()>> inbox_;
  bool running_ = false;
  std::atomic<bool> stopping_{false};

  // The thread's own.
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<size_t> free_;
  std::vector<Timer> timers_;  // a heap
  std::string read_buffer_, scratch_, frame_;
  EventWriter writer_;
  net::KernelClock kernel_clock_;
  uint32_t generation_ = 0;
  Lateness lateness_;
  int64_t events_ = 0, bytes_ = 0, writes_ = 0;
  Nanos cpu_ = 0;
};

}  // namespace anvil::scripted
