#include <sys/un.h>

#include <algorithm>

#include "base/strings.h"
#include "net/http_call.h"

namespace anvil::net {

namespace {

tl::unexpected<Error> bad(std::string_view text, std::string what, std::string hint = {}) {
  return fail(Kind::kInvalidInput, Side::kClient,
              "the address \"" + base::to_valid_utf8(text.substr(0, 200)) + "\" " + std::move(what),
              std::move(hint));
}

bool is_host_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

bool is_ipv6_char(char c) {
  return is_host_char(c) || c == ':' || c == '%';
}

Result<Url> parse_unix(std::string_view text, std::string_view path) {
  if (path.empty() || path.front() != '/')
    return bad(text, "needs an absolute path", "write it as unix:/run/engine.sock");
  const size_t slashes = std::min(path.find_first_not_of('/'), path.size());
  path.remove_prefix(slashes - 1);
  if (path.size() < 2)
    return bad(text, "names no socket file", "write it as unix:/run/engine.sock");
  if (path.size() >= sizeof(sockaddr_un{}.sun_path))
    return bad(text, "has a socket path of " + std::to_string(path.size()) + " bytes",
               "the kernel allows 107 bytes; choose a shorter folder");
  Url url;
  url.scheme = "unix";
  url.socket_path = path;
  url.port = 0;
  return url;
}

Result<int> parse_port(std::string_view text, std::string_view digits) {
  const auto port = base::parse_int(digits);
  if (!port || *port < 1 || *port > 65535 || digits.front() == '+')
    return bad(text, "has the port \"" + std::string(digits) + "\"", "a port is 1 to 65535");
  return static_cast<int>(*port);
}

}  // namespace

std::string Url::host_header() const {
  if (scheme == "unix") return "localhost";
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == (scheme == "https" ? 443 : 80) ? name : name + ":" + std::to_string(port);
}

Result<Url> parse_url(std::string_view text) {
  for (const unsigned char c : text)
    if (c <= ' ' || c == 0x7f) return bad(text, "has a space or control character in it");
  if (text.empty())
    return fail(Kind::kInvalidInput, Side::kClient, "the address is empty",
                "write it as http://127.0.0.1:8080");
  if (base::iequals(text.substr(0, 5), "unix:")) return parse_unix(text, text.substr(5));

  const size_t colon = text.find("://");
  if (colon == std::string_view::npos)
    return bad(text, "has no scheme", "write it as http://" + std::string(text));
  const std::string scheme = base::lower(text.substr(0, colon));
  if (scheme != "http" && scheme != "https")
    return bad(text, "has the scheme \"" + base::to_valid_utf8(scheme) + "\"",
               "http://, https:// and unix: are possible");

  std::string_view rest = text.substr(colon + 3);
  if (rest.find_first_of("?#") != std::string_view::npos)
    return bad(text, "has a query or fragment", "leave out what follows ? or #");
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash);
  std::string_view path = rest.substr(slash);
  if (authority.find('@') != std::string_view::npos)
    return fail(Kind::kInvalidInput, Side::kClient, "the address holds a user name or password",
                "leave it out and give the key as api_key = \"env:NAME\"");

  Url url;
  url.scheme = scheme;
  if (scheme == "https") url.port = 443;
  if (!authority.empty() && authority.front() == '[') {
    const size_t close = authority.find(']');
    if (close == std::string_view::npos) return bad(text, "has [ without ]");
    url.host = authority.substr(1, close - 1);
    authority.remove_prefix(close + 1);
    if (url.host.find(':') == std::string::npos ||
        !std::all_of(url.host.begin(), url.host.end(), is_ipv6_char))
      return bad(text, "has no IPv6 address between [ and ]");
    if (!authority.empty() && authority.front() != ':')
      return bad(text, "has something other than a port after ]");
  } else {
    const size_t port_at = std::min(authority.find(':'), authority.size());
    if (authority.find(':', std::min(port_at + 1, authority.size())) != std::string_view::npos)
      return bad(text, "has several colons", "an IPv6 address stands in brackets: http://[::1]:80");
    url.host = base::lower(authority.substr(0, port_at));
    authority.remove_prefix(port_at);
    if (url.host.empty()) return bad(text, "names no host");
    if (!std::all_of(url.host.begin(), url.host.end(), is_host_char))
      return bad(text, "has a host with characters that no host name has");
  }
  if (!authority.empty()) {
    authority.remove_prefix(1);
    if (authority.empty()) return bad(text, "has a colon without a port");
    url.port = TRY(parse_port(text, authority));
  }
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  if (path.ends_with("/v1")) path.remove_suffix(3);
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  url.path_prefix = path;
  return url;
}

}  // namespace anvil::net
