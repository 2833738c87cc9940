#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"
#include "net/http_call.h"

namespace anvil::net {

// One address that can be dialled.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  std::string text;  // "127.0.0.1:8080", "[::1]:8080", "unix:/run/engine.sock"

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

// The addresses behind a url, in the order to try them. Literals and unix paths never ask a
// resolver; "localhost" is both loopback addresses; any other name blocks in getaddrinfo.
Result<std::vector<Address>> resolve(const Url& url);

// Connects without blocking, going through the addresses until one answers. start() begins; while
// it says kPending, poll fd() for writing and call progress(); kBusy (a unix listener whose backlog
// is full) means: call start() again a little later. fd() changes when the next address is tried.
// One dialer makes one connection; any thread.
class Dialer {
 public:
  enum class State { kPending, kBusy, kConnected, kFailed };

  explicit Dialer(std::shared_ptr<const std::vector<Address>> addresses);
  State start();
  State progress();
  int fd() const { return fd_.get(); }
  base::Fd take() {
    return std::move(fd_);
  }  // the connected socket, non-blocking, TCP_NODELAY, stamped
  const Error& error() const { return error_; }  // why the last address failed
  // How many sockets were made since the last call: fd() may have become another one with the same
  // number.
  int take_new_descriptors() { return std::exchange(made_, 0); }

 private:
  State begin_next();
  State refused(int errno_value);

  std::shared_ptr<const std::vector<Address>> addresses_;
  size_t next_ = 0;
  int made_ = 0;
  base::Fd fd_;
  Error error_;
};

// The error of a connect() to `address` that failed with `errno_value`: always Kind::kConnect or
// kPermission, side upstream.
Error connect_error(int errno_value, const std::string& address);

// Waits until the descriptor is ready for `events` (POLLIN, POLLOUT), the deadline passes
// (kTimeout) or the call is cancelled (kCancelled). `what` names the wait in the error.
Result<void> wait_ready(int fd, short events, Nanos deadline, const base::Cancel* cancel,
                        const std::string& what);

}  // namespace anvil::net
