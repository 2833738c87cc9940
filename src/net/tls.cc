#include "net/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <climits>
#include <string>

#include "base/files.h"
#include "net/response_reader.h"

namespace anvil::net {

namespace {
// Where distributions keep their certificates, for an OpenSSL that was built to look elsewhere.
constexpr const char* kStores[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
};
constexpr const char* kTrustHint =
    "give the CA file that signed it, or declare the connection insecure";

// The first error that OpenSSL noted, in words; empties its queue.
std::string openssl_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return reason != nullptr ? reason : "no reason given";
}

bool is_ip_literal(const std::string& host) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

std::string certificate_hint(long verdict) {
  switch (verdict) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "look at the dates of the certificate and at the clock of this host";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "use a name that the certificate is for in the address";
    default:
      return kTrustHint;
  }
}
}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::create(const TlsOptions& options) {
  if (options.insecure || !options.ca_file.empty()) return make(options);
  static const auto system = make({});
  return system;
}

Result<std::shared_ptr<const TlsContext>> TlsContext::make(const TlsOptions& options) {
  std::shared_ptr<TlsContext> out(new TlsContext(SSL_CTX_new(TLS_client_method())));
  SSL_CTX* context = out->context_;
  if (context == nullptr)
    return fail(Kind::kInternal, Side::kInternal, "TLS cannot be set up: " + openssl_reason());
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // Idle connections keep no 16 KiB buffers.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  const unsigned char http11[] = "\x08http/1.1";
  SSL_CTX_set_alpn_protos(context, http11, sizeof http11 - 1);
  SSL_CTX_set_verify(context, options.insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  if (options.insecure) return out;
  if (!options.ca_file.empty()) {
    if (SSL_CTX_load_verify_file(context, options.ca_file.c_str()) != 1)
      return fail(Kind::kInvalidInput, Side::kClient,
                  "the CA file \"" + options.ca_file + "\" cannot be used: " + openssl_reason(),
                  "it must hold certificates in PEM form (-----BEGIN CERTIFICATE-----)");
    return out;
  }
  SSL_CTX_set_default_verify_paths(context);
  if (!base::exists(X509_get_default_cert_file()) && !base::exists(X509_get_default_cert_dir())) {
    const auto store = std::find_if(std::begin(kStores), std::end(kStores),
                                    [](const char* path) { return base::exists(path); });
    if (store != std::end(kStores)) SSL_CTX_load_verify_file(context, *store);
  }
  ERR_clear_error();
  return out;
}

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
}

TlsSession::TlsSession(const TlsContext& context, const std::string& host)
    : session_(SSL_new(context.context_)), host_(host.substr(0, host.find('%'))) {
  SSL_set_bio(session_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_connect_state(session_);
  if (is_ip_literal(host_)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session_), host_.c_str());
  } else {
    SSL_set_tlsext_host_name(session_, host_.c_str());
    SSL_set_hostflags(session_, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    SSL_set1_host(session_, host_.c_str());
  }
}

TlsSession::~TlsSession() {
  SSL_free(session_);
}

void TlsSession::feed(std::string_view bytes) {
  constexpr size_t kEnoughToTell = 80;
  if (first_bytes_.size() < kEnoughToTell)
    first_bytes_.append(bytes.substr(0, kEnoughToTell - first_bytes_.size()));
  while (!bytes.empty()) {
    const int piece = static_cast<int>(std::min<size_t>(bytes.size(), INT_MAX));
    BIO_write(SSL_get_rbio(session_), bytes.data(), piece);
    bytes.remove_prefix(static_cast<size_t>(piece));
  }
}

Result<bool> TlsSession::handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(session_);
  if (done == 1) return true;
  const int code = SSL_get_error(session_, done);
  if (code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE) return false;
  return fail(handshake_error(code));
}

Error TlsSession::handshake_error(int code) const {
  const long verdict = SSL_get_verify_result(session_);
  if (verdict != X509_V_OK) {
    ERR_clear_error();
    return {Kind::kConnect, Side::kUpstream,
            "the certificate of " + host_ +
                " is not accepted: " + X509_verify_cert_error_string(verdict),
            certificate_hint(verdict)};
  }
  std::string hint = other_scheme_hint(first_bytes_);
  std::string detail = "the TLS handshake with " + host_ + " failed: " +
                       (code == SSL_ERROR_SYSCALL ? "the peer closed" : openssl_reason());
  if (!hint.empty()) detail += "; the peer answered " + quote_bytes(first_bytes_);
  ERR_clear_error();
  return {Kind::kConnect, Side::kUpstream, std::move(detail), std::move(hint)};
}

Error TlsSession::closed_early() const {
  std::string hint = other_scheme_hint(first_bytes_);
  return {Kind::kConnect, Side::kUpstream,
          "the peer closed in the middle of the TLS handshake with " + host_,
          hint.empty() ? "does that port speak https? If it speaks plain http, write http://"
                       : std::move(hint)};
}

Result<void> TlsSession::encrypt(std::string_view plain) {
  while (!plain.empty()) {
    ERR_clear_error();
    size_t put = 0;
    if (SSL_write_ex(session_, plain.data(), plain.size(), &put) != 1)
      return fail(Kind::kReset, Side::kUpstream, "encrypt the request: " + openssl_reason());
    plain.remove_prefix(put);
  }
  return {};
}

Result<size_t> TlsSession::decrypt(char* into, size_t size) {
  ERR_clear_error();
  size_t got = 0;
  const int done = SSL_read_ex(session_, into, size, &got);
  if (done == 1) return got;
  switch (SSL_get_error(session_, done)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
    case SSL_ERROR_ZERO_RETURN:  // the close of the connection follows
      return size_t{0};
    default:
      return fail(Kind::kProtocol, Side::kUpstream,
                  "the encrypted answer cannot be read: " + openssl_reason());
  }
}

void TlsSession::take_output(std::string& to) {
  BIO* out = SSL_get_wbio(session_);
  const size_t waiting = BIO_ctrl_pending(out);
  if (waiting == 0) return;
  const size_t before = to.size();
  to.resize(before + waiting);
  size_t got = 0;
  BIO_read_ex(out, to.data() + before, waiting, &got);
  to.resize(before + got);
}

std::string other_scheme_hint(std::string_view first_bytes) {
  if (first_bytes.starts_with("HTTP/"))
    return "the port speaks plain http: write http:// in the address";
  const bool tls_record = first_bytes.size() >= 2 && first_bytes[1] == '\x03' &&
                          first_bytes[0] >= '\x14' && first_bytes[0] <= '\x17';
  if (tls_record) return "the port speaks TLS: write https:// in the address";
  return {};
}

}  // namespace anvil::net
