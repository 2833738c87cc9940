#include <gtest/gtest.h>

#include "net/http_call.h"

namespace anvil::net {
namespace {

TEST(ParseUrl, TakesAddressesApart) {
  const struct {
    const char* text;
    const char* scheme;
    const char* host;
    int port;
    const char* prefix;
    const char* socket;
    const char* host_header;
  } cases[] = {
      {"http://127.0.0.1:8080", "http", "127.0.0.1", 8080, "", "", "127.0.0.1:8080"},
      {"http://127.0.0.1", "http", "127.0.0.1", 80, "", "", "127.0.0.1"},
      {"HTTP://LocalHost:80/", "http", "localhost", 80, "", "", "localhost"},
      {"http://[::1]:8000", "http", "::1", 8000, "", "", "[::1]:8000"},
      {"http://[fe80::1%eth0]", "http", "fe80::1%eth0", 80, "", "", "[fe80::1%eth0]"},
      {"http://engine-1.lan:9/api/", "http", "engine-1.lan", 9, "/api", "", "engine-1.lan:9"},
      {"http://h:1/v1", "http", "h", 1, "", "", "h:1"},
      {"http://h:1/v1/", "http", "h", 1, "", "", "h:1"},
      {"http://h:1/proxy/m/v1/", "http", "h", 1, "/proxy/m", "", "h:1"},
      {"http://h:1/v10", "http", "h", 1, "/v10", "", "h:1"},
      {"https://api.example.org/v1", "https", "api.example.org", 443, "", "", "api.example.org"},
      {"https://h:8443", "https", "h", 8443, "", "", "h:8443"},
      {"https://h:80", "https", "h", 80, "", "", "h:80"},
      {"http://h:443", "http", "h", 443, "", "", "h:443"},
      {"unix:/run/engine.sock", "unix", "", 0, "", "/run/engine.sock", "localhost"},
      {"unix:///run/engine.sock", "unix", "", 0, "", "/run/engine.sock", "localhost"},
  };
  for (const auto& c : cases) {
    const auto url = parse_url(c.text);
    ASSERT_TRUE(url) << c.text << ": " << base::to_string(url.error());
    EXPECT_EQ(url->scheme, c.scheme) << c.text;
    EXPECT_EQ(url->host, c.host) << c.text;
    EXPECT_EQ(url->port, c.port) << c.text;
    EXPECT_EQ(url->path_prefix, c.prefix) << c.text;
    EXPECT_EQ(url->socket_path, c.socket) << c.text;
    EXPECT_EQ(url->host_header(), c.host_header) << c.text;
  }
}

TEST(ParseUrl, SaysWhatIsWrong) {
  const std::string long_path = "unix:/" + std::string(120, 'x');
  const struct {
    std::string text;
    const char* says;
  } cases[] = {
      {"", "empty"},
      {"127.0.0.1:8080", "http://127.0.0.1:8080"},
      {"localhost", "no scheme"},
      {"ftp://h", "scheme \"ftp\""},
      {"http://", "no host"},
      {"http://:80", "no host"},
      {"http:///v1", "no host"},
      {"http://h:", "without a port"},
      {"http://h:0", "1 to 65535"},
      {"http://h:65536", "1 to 65535"},
      {"http://h:+80", "1 to 65535"},
      {"http://h:80x", "1 to 65535"},
      {"http://::1:80", "brackets"},
      {"http://[::1", "without ]"},
      {"http://[]:80", "no IPv6"},
      {"http://[::1]80", "after ]"},
      {"http://h/x?y=1", "query"},
      {"http://h/#x", "query or fragment"},
      {"http://h x/", "space or control"},
      {std::string("http://h\n/", 10), "space or control"},
      {"http://h\x01/", "space or control"},
      {"http://h\xff/", "characters"},
      {"unix:", "absolute path"},
      {"unix:run/x", "absolute path"},
      {"unix:///", "no socket file"},
      {long_path, "107 bytes"},
  };
  for (const auto& c : cases) {
    const auto url = parse_url(c.text);
    ASSERT_FALSE(url) << c.text;
    EXPECT_NE(base::to_string(url.error()).find(c.says), std::string::npos)
        << c.text << " said " << base::to_string(url.error());
  }
}

TEST(ParseUrl, NeverQuotesCredentials) {
  const auto url = parse_url("http://user:sesame@h:80");
  ASSERT_FALSE(url);
  EXPECT_EQ(base::to_string(url.error()).find("sesame"), std::string::npos);
}

}  // namespace
}  // namespace anvil::net
