#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"
#include "scripted/ledger.h"
#include "scripted/schedule.h"

namespace anvil::scripted {

class Engine;
class Loop;

struct Options {
  std::string listen = "127.0.0.1:0";        // HOST:PORT with a literal address, or unix:PATH
  std::string tls_certificate{}, tls_key{};  // PEM files; both or none
  int threads = 1;
  int64_t ledger_events = 2'000'000;  // what the ledger keeps at most, 40 bytes each
  std::optional<Nanos> spin{};        // instead of the schedule's
};

// The scripted engine: answers requests exactly as its schedule says and keeps a ledger of what it
// wrote and when, on the clock that clients on this host use (CLOCK_MONOTONIC). Its identity says
// that it is scripted.
//
// Lifecycle: start() binds, listens and answers on threads of its own until stop() or destruction;
// answers in progress end there. Public functions: any thread.
class Server {
 public:
  // Also raises the soft limit of file descriptors to the hard one. Errors: kUsage (address),
  // kPortInUse, kPermission, kInvalidInput (certificate).
  static Result<std::unique_ptr<Server>> start(Schedule schedule, const Options& options = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // "http://127.0.0.1:41234", "https://...", "unix:/path".
  const std::string& base_url() const { return url_; }
  const Schedule& schedule() const;
  // Everything that has ended so far. A request whose last byte a client has read is in it.
  Ledger ledger();
  void stop();

 private:
  Server();
  Result<void> listen(const std::string& address, bool tls);

  std::unique_ptr<Engine> engine_;
  std::vector<std::unique_ptr<Loop>> loops_;
  base::Fd listener_;
  std::string url_, socket_path_;
  size_t next_loop_ = 0;  // the first loop's thread
};

}  // namespace anvil::scripted
