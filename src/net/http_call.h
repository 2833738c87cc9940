#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/result.h"
#include "net/tls.h"

namespace anvil::net {

// A parsed http://, https:// or unix: address.
struct Url {
  std::string scheme;  // "http", "https" or "unix"
  std::string host;    // without brackets
  int port = 80;
  std::string path_prefix;  // what stands before "/v1", without a final slash; may be empty
  std::string socket_path;  // unix only

  std::string host_header() const;
};
Result<Url> parse_url(std::string_view text);

struct HttpReply {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // First header of that name, case-insensitive; "" if absent.
  std::string_view header(std::string_view name) const;
};

// One small request on a connection of its own, blocking: readiness, identity, tokenizer, metrics.
// Not for timing. The whole call ends within `limit`; the body may have at most `max_body` bytes.
struct HttpCall {
  std::string method = "GET";
  std::string path;  // appended to the url's prefix
  std::string body;
  std::string api_key;
  Nanos limit = 10 * kSecond;
  uint64_t max_body = 16u << 20;
  TlsOptions tls = {};
};
Result<HttpReply> http_call(const Url& url, const HttpCall& call,
                            const base::Cancel* cancel = nullptr);

// True when a connect to the address is refused, i.e. nobody listens there.
bool port_is_free(const std::string& host, int port);
// A port that the kernel gave out on loopback a moment ago.
Result<int> pick_free_port();

}  // namespace anvil::net
