#include "scripted/transport.h"

#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace anvil::scripted {

namespace {
tl::unexpected<Error> tls_error(const std::string& what) {
  char text[256] = "unknown reason";
  if (const unsigned long code = ERR_get_error()) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return fail(Kind::kInvalidInput, Side::kClient, what + ": " + text,
              "give PEM files: the certificate with its chain, and the key that belongs to it");
}
}  // namespace

Result<std::shared_ptr<const TlsIdentity>> TlsIdentity::load(const std::string& certificate,
                                                             const std::string& key) {
  auto identity = std::make_shared<TlsIdentity>();
  identity->context_.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* context = identity->context_.get();
  if (!context) return tls_error("cannot set up TLS");
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1)
    return tls_error("cannot use the certificate " + certificate);
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1)
    return tls_error("cannot use the key " + key);
  return identity;
}

Transport::Transport(base::Fd fd, const TlsIdentity* identity) : fd_(std::move(fd)) {
  if (!identity) return;
  ssl_.reset(SSL_new(identity->get()));
  if (ssl_) {
    SSL_set_fd(ssl_.get(), fd_.get());
    SSL_set_accept_state(ssl_.get());
  } else {
    fd_.reset();
  }
}

Transport::Moved Transport::judge(int result) {
  wants_write_ = false;
  if (result > 0) return {State::kOk, static_cast<size_t>(result)};
  const int reason = SSL_get_error(ssl_.get(), result);
  ERR_clear_error();
  wants_write_ = reason == SSL_ERROR_WANT_WRITE;
  const bool again = wants_write_ || reason == SSL_ERROR_WANT_READ;
  return {again ? State::kAgain : State::kClosed, 0};
}

Transport::Moved Transport::read(std::span<char> into, const net::KernelClock& clock) {
  if (ssl_) {
    const auto size = std::min<size_t>(into.size(), INT_MAX);
    Moved moved = judge(SSL_read(ssl_.get(), into.data(), static_cast<int>(size)));
    moved.arrived = mono_now();
    return moved;
  }
  for (;;) {
    const net::Received got = net::receive(fd_.get(), into.data(), into.size(), clock);
    if (got.bytes > 0) return {State::kOk, static_cast<size_t>(got.bytes), got.at};
    if (got.bytes == 0) return {State::kClosed};
    if (got.error == EAGAIN || got.error == EWOULDBLOCK) return {State::kAgain};
    if (got.error != EINTR) return {State::kClosed};
  }
}

Transport::Moved Transport::write(std::string_view bytes) {
  if (bytes.empty()) return {};
  if (ssl_) {
    const auto size = std::min<size_t>(bytes.size(), INT_MAX);
    return judge(SSL_write(ssl_.get(), bytes.data(), static_cast<int>(size)));
  }
  for (;;) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) return {State::kOk, static_cast<size_t>(sent)};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {State::kAgain, 0};
    if (errno != EINTR) return {State::kClosed, 0};
  }
}

void Transport::close() {
  if (ssl_ && fd_) {
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
  ssl_.reset();
  fd_.reset();
}

void Transport::reset() {
  if (fd_) {
    const linger now{1, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  if (ssl_) SSL_set_quiet_shutdown(ssl_.get(), 1);
  ssl_.reset();
  fd_.reset();
}

}  // namespace anvil::scripted
