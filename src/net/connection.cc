#include "net/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace anvil::net {

Result<std::shared_ptr<const Destination>> find_destination(const Url& url, const TlsOptions& tls) {
  auto out = std::make_shared<Destination>();
  out->host = url.host;
  if (url.scheme == "https") out->tls = TRY(TlsContext::create(tls));
  out->addresses = std::make_shared<const std::vector<Address>>(TRY(resolve(url)));
  return out;
}

Connection::State Connection::open(std::shared_ptr<const Destination> destination) {
  close();
  destination_ = std::move(destination);
  moments_ = {};
  moments_.connect_begin = mono_now();
  dialer_ = std::make_unique<Dialer>(destination_->addresses);
  return dialed(dialer_->start());
}

void Connection::close() {
  dialer_.reset();
  tls_.reset();
  fd_.reset();
  plain_ = {};
  sealed_ = {};
  sealed_sent_ = 0;
  state_ = State::kClosed;
}

Connection::State Connection::failed(Error error) {
  close();
  error_ = std::move(error);
  return state_ = State::kFailed;
}

Connection::State Connection::progress() {
  switch (state_) {
    case State::kDialing:
      return dialed(dialer_->progress());
    case State::kBusy:
      return dialed(dialer_->start());
    case State::kHandshaking:
      return shake_hands();
    default:
      return state_;
  }
}

Connection::State Connection::dialed(Dialer::State state) {
  descriptors_ += dialer_->take_new_descriptors();
  switch (state) {
    case Dialer::State::kPending:
      return state_ = State::kDialing;
    case Dialer::State::kBusy:
      return state_ = State::kBusy;
    case Dialer::State::kFailed:
      return failed(dialer_->error());
    case Dialer::State::kConnected:
      break;
  }
  moments_.connected = mono_now();
  fd_ = dialer_->take();
  dialer_.reset();
  if (!destination_->tls) return state_ = State::kOpen;
  moments_.tls_begin = moments_.connected;
  tls_ = std::make_unique<TlsSession>(*destination_->tls, destination_->host);
  state_ = State::kHandshaking;
  return shake_hands();
}

Connection::State Connection::shake_hands() {
  for (;;) {
    const Result<bool> done = tls_->handshake();
    tls_->take_output(sealed_);
    const bool broken = flush() == Sent::kBroken;
    if (!done) return failed(done.error());
    if (*done) {
      moments_.tls_done = mono_now();
      return state_ = State::kOpen;
    }
    char buffer[8 * 1024];
    const ssize_t got = recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) {
      tls_->feed({buffer, static_cast<size_t>(got)});
    } else if (got == 0 || broken) {
      return failed(tls_->closed_early());
    } else if (errno == EAGAIN) {
      return state_;
    } else if (errno != EINTR) {
      Error error = tls_->closed_early();
      error.detail += ": " + base::from_errno(errno, "read").detail;
      return failed(std::move(error));
    }
  }
}

Result<void> Connection::put(std::string_view bytes) {
  if (!tls_) {
    plain_ = bytes;
    return {};
  }
  TRY(tls_->encrypt(bytes));
  tls_->take_output(sealed_);
  return {};
}

Connection::Sent Connection::flush() {
  for (;;) {
    const std::string_view left = tls_ ? std::string_view(sealed_).substr(sealed_sent_) : plain_;
    if (left.empty()) {
      sealed_ = {};
      sealed_sent_ = 0;
      return Sent::kAll;
    }
    const ssize_t put = send(fd_.get(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put >= 0) {
      if (tls_)
        sealed_sent_ += static_cast<size_t>(put);
      else
        plain_.remove_prefix(static_cast<size_t>(put));
    } else if (errno == EAGAIN) {
      return Sent::kSome;
    } else if (errno != EINTR) {
      return Sent::kBroken;
    }
  }
}

Result<size_t> Connection::decrypt(char* into, size_t size) {
  Result<size_t> got = tls_->decrypt(into, size);
  // Reading can oblige us to answer, for instance to a change of keys.
  tls_->take_output(sealed_);
  if (!sealed_.empty()) flush();
  return got;
}

Result<void> open_now(Connection& connection, std::shared_ptr<const Destination> destination,
                      Nanos deadline, const base::Cancel* cancel) {
  using State = Connection::State;
  State state = connection.open(std::move(destination));
  for (;;) {
    switch (state) {
      case State::kOpen:
        return {};
      case State::kClosed:
      case State::kFailed:
        return fail(connection.error());
      case State::kDialing:
        TRY(wait_ready(connection.fd(), POLLOUT, deadline, cancel, "while connecting"));
        break;
      case State::kHandshaking:
        TRY(wait_ready(connection.fd(), POLLIN, deadline, cancel, "in the TLS handshake"));
        break;
      case State::kBusy: {
        const Nanos now = mono_now();
        if (deadline > 0 && now >= deadline)
          return fail(Kind::kTimeout, Side::kUpstream,
                      "the time limit ran out while the listener's backlog was full");
        const Nanos pause = deadline > 0 ? std::min(kMillisecond, deadline - now) : kMillisecond;
        const auto slept = wait_ready(-1, 0, now + pause, cancel, "");
        if (!slept && slept.error().kind != Kind::kTimeout) return fail(slept.error());
        break;
      }
    }
    state = connection.progress();
  }
}

}  // namespace anvil::net
