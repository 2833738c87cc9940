#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"
#include "net/http_call.h"
#include "net/kernel_stamp.h"
#include "net/socket.h"
#include "net/tls.h"

namespace anvil::net {

// Where connections go: resolved once, shared by all of them.
struct Destination {
  std::string host;  // what a certificate must be for
  std::shared_ptr<const std::vector<Address>> addresses;
  std::shared_ptr<const TlsContext> tls;  // null: plain
};
// Blocks in the resolver when the url holds a name.
Result<std::shared_ptr<const Destination>> find_destination(const Url& url, const TlsOptions& tls);

// One connection, plain or TLS, that never blocks. After open(), watch fd() for reading and
// writing, edge-triggered or not, and call progress() until the state is kOpen or kFailed. fd()
// may become another descriptor on the way: descriptors() counts them.
//
// Lifecycle: open(), use, close(), and again. Thread: the owner's.
class Connection {
 public:
  enum class State {
    kClosed,
    kDialing,
    kBusy,  // a unix listener's backlog is full: call progress() a little later
    kHandshaking,
    kOpen,
    kFailed,  // see error()
  };
  struct Moments {
    Nanos connect_begin = 0;
    std::optional<Nanos> connected, tls_begin, tls_done;
  };

  State open(std::shared_ptr<const Destination> destination);
  State progress();
  void close();

  State state() const { return state_; }
  int fd() const { return dialer_ ? dialer_->fd() : fd_.get(); }
  int descriptors() const { return descriptors_; }
  const Error& error() const { return error_; }
  const Moments& moments() const { return moments_; }
  bool encrypted() const { return tls_ != nullptr; }

  // Hands over a request; `bytes` must stay until it was sent.
  Result<void> put(std::string_view bytes);
  enum class Sent { kAll, kSome, kBroken };
  // Sends what the kernel takes. kBroken: the peer has closed its side; it may still have answered.
  Sent flush();

  // Reads what came over the wire, together with its stamp. On an encrypted connection it goes
  // through decrypt(): the whole of it before the next read.
  Received receive(char* into, size_t size, const KernelClock& clock) const {
    return net::receive(fd_.get(), into, size, clock);
  }
  void feed(std::string_view wire_bytes) { tls_->feed(wire_bytes); }
  Result<size_t> decrypt(char* into, size_t size);

 private:
  State dialed(Dialer::State state);
  State shake_hands();
  State failed(Error error);

  std::shared_ptr<const Destination> destination_;
  std::unique_ptr<Dialer> dialer_;
  base::Fd fd_;
  std::unique_ptr<TlsSession> tls_;
  std::string_view plain_;  // what is left of the request, on a plain connection
  std::string sealed_;      // what is to be sent on an encrypted one
  size_t sealed_sent_ = 0;
  State state_ = State::kClosed;
  int descriptors_ = 0;
  Moments moments_;
  Error error_;
};

// Blocks until open, until `deadline` on CLOCK_MONOTONIC (0 = none) or until cancelled.
Result<void> open_now(Connection& connection, std::shared_ptr<const Destination> destination,
                      Nanos deadline, const base::Cancel* cancel = nullptr);

}  // namespace anvil::net
