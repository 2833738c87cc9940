#pragma once

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "net/test_server.h"

namespace anvil::net {

// A key and a certificate that signs itself, made for one test and never written with its key.
class TestCertificate {
 public:
  // `names` as OpenSSL spells alternative names: "DNS:localhost,IP:127.0.0.1". The validity is in
  // days from now; a negative end makes an expired one.
  explicit TestCertificate(const std::string& names, int first_day = -1, int last_day = 1)
      : key_(EVP_EC_gen("P-256"), EVP_PKEY_free), certificate_(X509_new(), X509_free) {
    X509* x = certificate_.get();
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    constexpr long kDay = 24 * 3600;
    X509_gmtime_adj(X509_getm_notBefore(x), first_day * kDay);
    X509_gmtime_adj(X509_getm_notAfter(x), last_day * kDay);
    X509_set_pubkey(x, key_.get());
    X509_NAME* name = X509_get_subject_name(x);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(x, name);
    extend(NID_subject_alt_name, names);
    extend(NID_basic_constraints, "critical,CA:TRUE");
    X509_sign(x, key_.get(), EVP_sha256());
  }

  void use_in(SSL_CTX* context) const {
    SSL_CTX_use_certificate(context, certificate_.get());
    SSL_CTX_use_PrivateKey(context, key_.get());
  }
  // Writes the certificate alone, for TlsOptions::ca_file.
  void write_to(const std::string& path) const {
    BIO* out = BIO_new_file(path.c_str(), "w");
    PEM_write_bio_X509(out, certificate_.get());
    BIO_free(out);
  }

 private:
  void extend(int kind, const std::string& value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
    X509_add_ext(certificate_.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }

  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_;
  std::unique_ptr<X509, decltype(&X509_free)> certificate_;
};

// Speaks TLS in front of a server for tests and relays the bytes. `piece` > 0 writes that many at a
// time. One thread per connection; destruction ends and joins them.
class TestTlsFront {
 public:
  TestTlsFront(const TestServer& behind, const TestCertificate& certificate, size_t piece = 0)
      : port_behind_(behind.port()),
        piece_(piece),
        context_(SSL_CTX_new(TLS_server_method())),
        listener_([this](TestServer::Peer& peer) { relay(peer); }) {
    certificate.use_in(context_);
    ready_ = true;
    ready_.notify_all();
  }
  ~TestTlsFront() {
    listener_.reset();
    SSL_CTX_free(context_);
  }
  TestTlsFront(const TestTlsFront&) = delete;
  TestTlsFront& operator=(const TestTlsFront&) = delete;

  int port() const { return listener_->port(); }
  std::string url(const std::string& host = "127.0.0.1") const {
    return "https://" + host + ":" + std::to_string(port());
  }

 private:
  // Owned so that it can be ended before the context.
  struct Listener : std::unique_ptr<TestServer> {
    explicit Listener(TestServer::Handler handler)
        : std::unique_ptr<TestServer>(std::make_unique<TestServer>(std::move(handler))) {}
  };

  void relay(TestServer::Peer& peer) {
    ready_.wait(false);
    SSL* session = SSL_new(context_);
    SSL_set_fd(session, peer.fd());
    if (SSL_accept(session) == 1) relay_open(session, peer.fd());
    SSL_free(session);
  }
  void relay_open(SSL* session, int front) {
    const base::Fd back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port_behind_));
    if (connect(back.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return;
    std::vector<char> buffer(32 * 1024);
    for (;;) {
      pollfd ready[2] = {{front, POLLIN, 0}, {back.get(), POLLIN, 0}};
      if (SSL_pending(session) == 0 && poll(ready, 2, -1) < 0) return;
      if (SSL_pending(session) > 0 || ready[0].revents != 0) {
        const int got = SSL_read(session, buffer.data(), static_cast<int>(buffer.size()));
        if (got <= 0 ||
            send(back.get(), buffer.data(), static_cast<size_t>(got), MSG_NOSIGNAL) <= 0)
          return;
      }
      if (ready[1].revents != 0) {
        const ssize_t got = recv(back.get(), buffer.data(), buffer.size(), 0);
        if (got <= 0) {
          SSL_shutdown(session);
          return;
        }
        const size_t step = piece_ > 0 ? piece_ : static_cast<size_t>(got);
        for (size_t at = 0; at < static_cast<size_t>(got); at += step)
          if (SSL_write(session, buffer.data() + at,
                        static_cast<int>(std::min(step, static_cast<size_t>(got) - at))) <= 0)
            return;
      }
    }
  }

  int port_behind_;
  size_t piece_;
  SSL_CTX* context_;
  std::atomic<bool> ready_{false};
  Listener listener_;
};

}  // namespace anvil::net
