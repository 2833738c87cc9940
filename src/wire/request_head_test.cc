#include "wire/request_head.h"

#include <gtest/gtest.h>

namespace anvil::wire {
namespace {

std::string verdict(std::string_view text, const std::vector<size_t>& cuts) {
  RequestHeadParser parser;
  for (size_t cut : cuts) {
    // A copy of its own for every call: the buffer may move.
    const std::string buffer(text.substr(0, cut));
    const Result<size_t> size = parser.parse(buffer);
    if (!size) return std::string(describe(size.error().kind).name) + ": " + size.error().detail;
    if (*size == 0) continue;
    const RequestHead& head = parser.head();
    std::string out = std::to_string(*size) + " " + std::string(head.method) + " " +
                      std::string(head.target) + " 1." + std::to_string(head.version_minor);
    for (const HeaderField& field : head.fields)
      out += " " + std::string(field.name) + "=" + std::string(field.value) + ";";
    out += head.chunked ? " chunked" : "";
    out += head.content_length ? " length " + std::to_string(*head.content_length) : "";
    out += head.expects_continue ? " expects" : "";
    return out + (head.keep_alive ? " keep" : " close");
  }
  return "incomplete";
}

std::string in_every_split(std::string_view text) {
  const std::string whole = verdict(text, {text.size()});
  std::vector<size_t> all;
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(verdict(text, {cut, text.size()}), whole) << "split at " << cut;
    all.push_back(cut);
  }
  EXPECT_EQ(verdict(text, all), whole) << "byte by byte";
  return whole;
}

TEST(RequestHeadTest, ReadsWhatClientsSend) {
  EXPECT_EQ(in_every_split("POST /v1/x?y=1 HTTP/1.1\r\nHost: a:1\r\nContent-Length: 12\r\n"
                           "Expect: 100-Continue\r\n\r\nrest"),
            "80 POST /v1/x?y=1 1.1 Host=a:1; Content-Length=12; Expect=100-Continue; length 12 "
            "expects keep");
  EXPECT_EQ(in_every_split("\r\n\r\nGET / HTTP/1.1\r\nhost:\r\nConnection: close\r\n\r\n"),
            "48 GET / 1.1 host=; Connection=close; close");
  EXPECT_EQ(in_every_split("GET / HTTP/1.0\r\n\r\n"), "18 GET / 1.0 close");
  EXPECT_EQ(in_every_split("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
            "42 GET / 1.0 Connection=keep-alive; keep");
  EXPECT_EQ(in_every_split("PUT * HTTP/1.1\r\nHost: x\r\ntransfer-encoding: Chunked\r\n\r\n"),
            "55 PUT * 1.1 Host=x; transfer-encoding=Chunked; chunked keep");
}

TEST(RequestHeadTest, IsIncompleteWithoutTheEmptyLine) {
  for (const char* text :
       {"", "\r\n", "G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r"})
    EXPECT_EQ(in_every_split(text), "incomplete") << text;
}

TEST(RequestHeadTest, RefusesWhatTwoReadersCouldReadDifferently) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"GET / HTTP/1.1\nHost: x\r\n\r\n", "bare LF"},
      {"GET / HTTP/1.1\r\nHost: x\ry\r\n\r\n", "bare CR"},
      {std::string_view("GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n", 28), "control byte 0"},
      {"GET / HTTP/1.1\r\nHost: x\r\n y\r\n\r\n", "malformed field"},
      {"GET / HTTP/1.1\r\nHost : x\r\n\r\n", "malformed field"},
      {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
       "more than one"},
      {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\n", "not one plain number"},
      {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
       "together"},
      {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
       "exactly one 'chunked'"},
      {"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0"},
      {"GET / HTTP/1.1\r\n\r\n", "no Host"},
      {"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", "more than one Host"},
      {"GET / HTTP/2.0\r\nHost: x\r\n\r\n", "neither 1.0 nor 1.1"},
      {"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", "holds a blank"},
      {"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", "holds a blank"},
      {"GET  HTTP/1.1\r\nHost: x\r\n\r\n", "empty"},
      {"GET /\r\nHost: x\r\n\r\n", "malformed request line"},
      {"G(T / HTTP/1.1\r\nHost: x\r\n\r\n", "no token"},
  };
  for (const auto& [text, reason] : kCases) {
    const std::string got = in_every_split(text);
    EXPECT_TRUE(got.starts_with("protocol: ")) << got;
    EXPECT_NE(got.find(reason), std::string::npos) << text << " -> " << got;
  }
}

TEST(RequestHeadTest, NamesItsLimits) {
  const std::string endless = "GET / HTTP/1.1\r\nA: " + std::string(kMaxHeadBytes, 'a');
  EXPECT_EQ(verdict(endless, {endless.size()}),
            "too_large: HTTP request head is larger than the limit of 65536 bytes");
  std::string many = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (size_t i = 0; i < kMaxHeadFields; ++i) many += "A: b\r\n";
  many += "\r\n";
  EXPECT_EQ(verdict(many, {many.size()}),
            "too_large: HTTP request head has more fields than the limit of 256");
}

}  // namespace
}  // namespace anvil::wire
