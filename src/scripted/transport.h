#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"
#include "net/kernel_stamp.h"

namespace anvil::scripted {

// The certificate and key that a server shows. Immutable once loaded; shared by its connections.
class TlsIdentity {
 public:
  // PEM files: the certificate with its chain, and its key. Errors name the file.
  static Result<std::shared_ptr<const TlsIdentity>> load(const std::string& certificate,
                                                         const std::string& key);
  SSL_CTX* get() const { return context_.get(); }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  std::unique_ptr<SSL_CTX, Free> context_;
};

// The bytes of one accepted connection, plain or TLS. Never blocks. Owner's thread; the thread must
// not die of SIGPIPE.
class Transport {
 public:
  enum class State { kOk, kAgain, kClosed };
  struct Moved {
    State state = State::kOk;
    size_t bytes = 0;
    Nanos arrived = 0;  // of a read: when the last of these bytes came in, by the kernel if it says
  };

  Transport() = default;
  // `identity` may be null: plain.
  Transport(base::Fd fd, const TlsIdentity* identity);

  // Kernel stamps need net::enable_receive_stamps on the socket; TLS hides them.
  Moved read(std::span<char> into, const net::KernelClock& clock);
  Moved write(std::string_view bytes);
  int fd() const { return fd_.get(); }
  bool open() const { return static_cast<bool>(fd_); }
  // A TLS handshake waits for room in the socket.
  bool wants_write() const { return wants_write_; }
  void close();  // with a farewell, where the protocol has one
  void reset();  // the peer sees a TCP reset

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  Moved judge(int result);

  base::Fd fd_;
  std::unique_ptr<SSL, Free> ssl_;
  bool wants_write_ = false;
};

}  // namespace anvil::scripted
