#include "wire/http_head.h"

#include <gtest/gtest.h>

#include "wire/answer.h"

namespace anvil::wire {
namespace {

// What a parser says about `text` that arrives in pieces ending at `cuts`.
std::string verdict(std::string_view text, const std::vector<size_t>& cuts,
                    ResponseHeadParser& parser) {
  parser.reset();
  for (size_t cut : cuts) {
    // A copy of its own for every call: the buffer may move.
    const std::string buffer(text.substr(0, cut));
    const Result<size_t> size = parser.parse(buffer);
    if (!size) return std::string(describe(size.error().kind).name) + ": " + size.error().detail;
    if (*size == 0) continue;
    const ResponseHead& head = parser.head();
    std::string out = std::to_string(*size) + " 1." + std::to_string(head.version_minor) + " " +
                      std::to_string(head.status) + " [" + std::string(head.reason) + "]";
    for (const HeaderField& field : head.fields) {
      out += " " + std::string(field.name) + "=" + std::string(field.value) + ";";
    }
    out += head.chunked ? " chunked" : "";
    out += head.content_length ? " length " + std::to_string(*head.content_length) : "";
    out += head.keep_alive ? " keep" : " close";
    return out;
  }
  return "incomplete";
}

std::string in_every_split(std::string_view text) {
  ResponseHeadParser parser;
  const std::string whole = verdict(text, {text.size()}, parser);
  std::vector<size_t> all;
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(verdict(text, {cut, text.size()}, parser), whole) << "split at " << cut;
    all.push_back(cut);
  }
  EXPECT_EQ(verdict(text, all, parser), whole) << "byte by byte";
  return whole;
}

TEST(ResponseHeadTest, ReadsWhatEnginesSend) {
  EXPECT_EQ(
      in_every_split("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
                     "transfer-encoding: chunked\r\nKeep-Alive: timeout=5, max=100\r\n\r\nrest"),
      "127 1.1 200 [OK] Content-Type=text/event-stream; charset=utf-8; "
      "transfer-encoding=chunked; Keep-Alive=timeout=5, max=100; chunked keep");
  EXPECT_EQ(in_every_split(
                "HTTP/1.1 404 Not Found\r\nContent-Length:  22 \t\r\nConnection: close\r\n\r\n"),
            "68 1.1 404 [Not Found] Content-Length=22; Connection=close; length 22 close");
  EXPECT_EQ(in_every_split("HTTP/1.0 200 OK\r\n\r\n"), "19 1.0 200 [OK] close");
  EXPECT_EQ(in_every_split("HTTP/1.0 200 OK\r\nConnection: foo, Keep-Alive\r\n\r\n"),
            "48 1.0 200 [OK] Connection=foo, Keep-Alive; keep");
  EXPECT_EQ(in_every_split("HTTP/1.1 204\r\n\r\n"), "16 1.1 204 [] keep");
  EXPECT_EQ(in_every_split("HTTP/1.1 204 \r\nX:\r\n\r\n"), "21 1.1 204 [] X=; keep");
}

TEST(ResponseHeadTest, SkipsInterimAnswers) {
  EXPECT_EQ(in_every_split("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: a\r\n\r\n"
                           "HTTP/1.1 200 OK\r\nA: b\r\n\r\n"),
            "81 1.1 200 [OK] A=b; keep");
  EXPECT_EQ(in_every_split("HTTP/1.1 100 Continue\r\n\r\n"), "incomplete");
}

TEST(ResponseHeadTest, IsIncompleteWithoutTheEmptyLine) {
  for (const char* text : {"", "H", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r", "HTTP/1.1 200 OK\r\n",
                           "HTTP/1.1 200 OK\r\nA: b\r\n\r"}) {
    EXPECT_EQ(in_every_split(text), "incomplete") << text;
  }
}

struct Refusal {
  std::string_view text;
  std::string_view reason;  // part of the error
};

TEST(ResponseHeadTest, RefusesWhatTwoReadersCouldReadDifferently) {
  using namespace std::string_view_literals;
  const Refusal kCases[] = {
      {"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "folded line"},
      {"HTTP/1.1 200 OK\r\n\tA: b\r\n\r\n", "folded line"},
      {"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n", "malformed field"},
      {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "malformed field"},
      {"HTTP/1.1 200 OK\r\n: empty\r\n\r\n", "malformed field"},
      {"HTTP/1.1 200 OK\nA: b\r\n\r\n", "bare LF"},
      {"HTTP/1.1 200 OK\r\nA: b\n\r\n", "bare LF"},
      {"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", "bare CR"},
      {"HTTP/1.1 200 OK\r\nA: b\r\r\n\r\n", "bare CR"},
      {"HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n"sv, "control byte 0"},
      {"HTTP/1.1 200 OK\r\nA: b\x7f\r\n\r\n", "control byte 127"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", "more than one"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "more than one"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", "not one plain number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", "not one plain number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "not one plain number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\n", "not one plain number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5 5\r\n\r\n", "not one plain number"},
      {"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "not one plain number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n", "not one plain number"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "exactly one 'chunked'"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", "exactly one 'chunked'"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "exactly one 'chunked'"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n", "exactly one 'chunked'"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
       "exactly one 'chunked'"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", "together"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "together"},
      {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0"},
      {"HTTP/2.0 200 OK\r\n\r\n", "does not begin with HTTP/1."},
      {"http/1.1 200 OK\r\n\r\n", "does not begin with HTTP/1."},
      {"\r\nHTTP/1.1 200 OK\r\n\r\n", "does not begin with HTTP/1."},
      {"SSH-2.0-OpenSSH_9.2\r\n", "does not begin with HTTP/1."},
      {"HTTP/1.7 200 OK\r\n\r\n", "neither 1.0 nor 1.1"},
      {"HTTP/1.1  200 OK\r\n\r\n", "malformed status line"},
      {"HTTP/1.1 20 OK\r\n\r\n", "malformed status line"},
      {"HTTP/1.1 2000 OK\r\n\r\n", "malformed status line"},
      {"HTTP/1.1 999 OK\r\n\r\n", "status 999"},
      {"HTTP/1.1 000 OK\r\n\r\n", "status 0"},
      {"HTTP/1.1 101 Switching Protocols\r\n\r\n", "101"},
  };
  for (const Refusal& refusal : kCases) {
    const std::string got = in_every_split(refusal.text);
    EXPECT_TRUE(got.starts_with("protocol: ")) << got;
    EXPECT_NE(got.find(refusal.reason), std::string::npos) << refusal.text << " -> " << got;
  }
}

TEST(ResponseHeadTest, NamesItsLimits) {
  ResponseHeadParser parser;
  const std::string endless = "HTTP/1.1 200 OK\r\nA: " + std::string(kMaxHeadBytes, 'a');
  EXPECT_EQ(verdict(endless, {endless.size()}, parser),
            "too_large: HTTP head is larger than the limit of 65536 bytes");

  std::string many = "HTTP/1.1 200 OK\r\n";
  for (size_t i = 0; i < kMaxHeadFields; ++i) many += "A: b\r\n";
  EXPECT_TRUE(parser.parse((parser.reset(), many + "\r\n")).has_value());
  many += "A: b\r\n\r\n";
  EXPECT_EQ(verdict(many, {many.size()}, parser),
            "too_large: HTTP head has more fields than the limit of 256");
}

TEST(ResponseHeadTest, FindsFieldsInAnyCase) {
  ResponseHeadParser parser;
  const std::string text = "HTTP/1.1 200 OK\r\nRetry-After: 3\r\n\r\n";
  ASSERT_TRUE(parser.parse(text).has_value());
  EXPECT_EQ(parser.head().field("retry-after"), "3");
  EXPECT_EQ(parser.head().field("server"), "");
}

TEST(BodyFramingTest, FollowsStatusMethodAndFields) {
  using Kind = BodyFraming::Kind;
  ResponseHead head;
  head.status = 200;
  EXPECT_EQ(body_framing(head, "GET").kind, Kind::kUntilClose);
  head.content_length = 7;
  EXPECT_EQ(body_framing(head, "GET").kind, Kind::kLength);
  EXPECT_EQ(body_framing(head, "GET").length, 7u);
  EXPECT_EQ(body_framing(head, "HEAD").kind, Kind::kNone);
  head.status = 304;
  EXPECT_EQ(body_framing(head, "GET").kind, Kind::kNone);
  head.status = 200;
  head.content_length = 0;
  EXPECT_EQ(body_framing(head, "GET").kind, Kind::kNone);
  head.content_length.reset();
  head.chunked = true;
  EXPECT_EQ(body_framing(head, "POST").kind, Kind::kChunked);
  head.status = 204;
  EXPECT_EQ(body_framing(head, "POST").kind, Kind::kNone);
}

TEST(RequestHeadTest, WritesOneHead) {
  const HeaderField fields[] = {{"Content-Type", "application/json"}, {"Content-Length", "2"}};
  const Result<std::string> head = request_head("POST", "/v1/x?a=b", "127.0.0.1:80", fields);
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(*head,
            "POST /v1/x?a=b HTTP/1.1\r\nHost: 127.0.0.1:80\r\nContent-Type: application/json\r\n"
            "Content-Length: 2\r\n\r\n");
}

TEST(RequestHeadTest, RefusesInjectionInEveryPart) {
  using namespace std::string_view_literals;
  EXPECT_FALSE(request_head("PO ST", "/", "h").has_value());
  EXPECT_FALSE(request_head("", "/", "h").has_value());
  EXPECT_FALSE(request_head("GET", "/ HTTP/1.1\r\nX: y", "h").has_value());
  EXPECT_FALSE(request_head("GET", "", "h").has_value());
  EXPECT_FALSE(request_head("GET", "/a b", "h").has_value());
  EXPECT_FALSE(request_head("GET", "/", "h\r\nX: y").has_value());
  EXPECT_FALSE(request_head("GET", "/", "").has_value());
  const HeaderField name[] = {{"A:b\r\nC", "d"}};
  EXPECT_FALSE(request_head("GET", "/", "h", name).has_value());
  for (std::string_view value : {"secret\r\nX: y"sv, "secret\n"sv, "secret\0"sv}) {
    const HeaderField bad[] = {{"Authorization", value}};
    const Result<std::string> head = request_head("GET", "/", "h", bad);
    ASSERT_FALSE(head.has_value());
    EXPECT_EQ(head.error().kind, Kind::kUsage);
    EXPECT_EQ(head.error().detail.find("secret"), std::string::npos) << "a value may be a secret";
  }
}

TEST(ApiTest, NamesAndPathsBelongTogether) {
  for (Api api : {Api::kChat, Api::kCompletions, Api::kResponses}) {
    EXPECT_EQ(api_from_name(name(api)), api);
  }
  EXPECT_EQ(path(Api::kChat), "/v1/chat/completions");
  EXPECT_EQ(path(Api::kCompletions), "/v1/completions");
  EXPECT_EQ(path(Api::kResponses), "/v1/responses");
  EXPECT_EQ(api_from_name("messages"), std::nullopt);
}

}  // namespace
}  // namespace anvil::wire
