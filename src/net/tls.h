#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct ssl_ctx_st;
struct ssl_st;

namespace anvil::net {

// What an https connection trusts.
struct TlsOptions {
  std::string ca_file = {};  // PEM; trusted instead of the system's certificates
  bool insecure = false;     // accept any certificate; only when a person says so
};

// The settings that the connections of one run share: the trusted certificates are read once, the
// system's once per process, because that takes a tenth of a second.
// Lifecycle: outlives its sessions. Thread: any, once created.
class TlsContext {
 public:
  static Result<std::shared_ptr<const TlsContext>> create(const TlsOptions& options);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsSession;
  static Result<std::shared_ptr<const TlsContext>> make(const TlsOptions& options);
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* context_;
};

// The client's side of one TLS connection, without any I/O: the owner moves the encrypted bytes, so
// that it can read them together with their receive stamps. TLS 1.2 or newer; no session is
// resumed: each connection pays for its whole handshake.
//
// Lifecycle: handshake() until it says true, moving bytes with feed() and take_output() in between;
// then encrypt() and decrypt(). Thread: the owner's.
class TlsSession {
 public:
  // `host`, a name or an IP literal, is what the certificate must be for.
  TlsSession(const TlsContext& context, const std::string& host);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Encrypted bytes from the peer.
  void feed(std::string_view bytes);
  // True when the handshake is done; false while it waits for the peer. A certificate that is not
  // accepted, or a peer that does not speak TLS, is kConnect with the remedy.
  Result<bool> handshake();
  // The error of a peer that closed in the middle of the handshake.
  Error closed_early() const;
  Result<void> encrypt(std::string_view plain);
  // Decrypts what was fed; 0 when nothing (more) can be read yet.
  Result<size_t> decrypt(char* into, size_t size);
  // Appends what has to be sent to the peer.
  void take_output(std::string& to);

 private:
  Error handshake_error(int code) const;

  ssl_st* session_;
  std::string host_;
  std::string first_bytes_;  // of the peer, to tell what it speaks
};

// The hint for a peer that answered with these bytes when something else was expected: that it
// speaks TLS where plain HTTP was sent, or the reverse. "" when they say neither.
std::string other_scheme_hint(std::string_view first_bytes);

}  // namespace anvil::net
