#include "net/response_reader.h"

#include <gtest/gtest.h>

namespace anvil::net {
namespace {

struct Outcome {
  int status = 0;
  std::string body;
  bool ended = false;
  bool reusable = false;
  std::string error;
  std::string left;
};

// Feeds `bytes` in pieces that end at every position of `cuts`, then closes if asked.
Outcome read(std::string_view bytes, size_t cut, bool close, std::string_view method = "POST") {
  ResponseReader reader;
  reader.begin(method);
  Outcome out;
  for (std::string_view input : {bytes.substr(0, cut), bytes.substr(cut)}) {
    for (bool more = true; more;) {
      const auto event = reader.next(input);
      if (!event) {
        out.error = event.error().detail;
        return out;
      }
      if (*event == ResponseReader::Event::kHead) out.status = reader.head().status;
      if (*event == ResponseReader::Event::kPayload) out.body += reader.payload();
      more = *event == ResponseReader::Event::kHead || *event == ResponseReader::Event::kPayload;
    }
    out.left += input;
  }
  if (close)
    if (const auto closed = reader.closed(); !closed) out.error = closed.error().detail;
  out.ended = reader.ended();
  out.reusable = reader.reusable();
  return out;
}

TEST(ResponseReader, ReadsEveryFramingAtEverySplit) {
  const struct {
    std::string bytes;
    const char* method;
    bool close;
    bool reusable;
    std::string body;
  } cases[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "POST", false, true, "hello"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "POST", false, true, ""},
      {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", "GET", false, false,
       "hi"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: "
       "v\r\n\r\n",
       "POST", false, true, "abcde"},
      {"HTTP/1.1 200 OK\r\n\r\nuntil close", "POST", true, false, "until close"},
      {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", "POST", false, false, "x"},
      {"HTTP/1.1 204 No Content\r\n\r\n", "POST", false, true, ""},
      {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", "HEAD", false, true, ""},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny", "POST", false,
       true, "y"},
  };
  for (const auto& c : cases) {
    for (size_t cut = 0; cut <= c.bytes.size(); ++cut) {
      const Outcome got = read(c.bytes, cut, c.close, c.method);
      EXPECT_EQ(got.error, "") << c.bytes << " cut at " << cut;
      EXPECT_EQ(got.body, c.body) << c.bytes << " cut at " << cut;
      EXPECT_TRUE(got.ended) << c.bytes << " cut at " << cut;
      EXPECT_EQ(got.reusable, c.reusable) << c.bytes << " cut at " << cut;
      EXPECT_EQ(got.left, "");
    }
  }
}

TEST(ResponseReader, LeavesWhatBelongsToNobody) {
  const std::string_view bytes = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1";
  const Outcome got = read(bytes, bytes.size(), false);
  EXPECT_EQ(got.body, "x");
  EXPECT_EQ(got.left, "HTTP/1.1");
}

TEST(ResponseReader, SaysWhatWasMissingAtAClose) {
  const struct {
    const char* bytes;
    const char* says;
  } cases[] = {
      {"", "before any byte"},
      {"HTTP/1.1 200 O", "inside the head"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "2 bytes before the declared end"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
       "before the last chunk"},
  };
  for (const auto& c : cases) {
    const Outcome got = read(c.bytes, 0, true);
    EXPECT_NE(got.error.find(c.says), std::string::npos) << got.error;
    EXPECT_FALSE(got.ended);
  }
}

TEST(ResponseReader, QuotesGarbage) {
  const Outcome garbage = read("SSH-2.0-OpenSSH\r\n\r\n", 0, false);
  EXPECT_NE(garbage.error.find("SSH-2.0-OpenSSH"), std::string::npos) << garbage.error;
  const Outcome chunk =
      read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 0, false);
  EXPECT_NE(chunk.error.find("zz"), std::string::npos) << chunk.error;
}

TEST(QuoteBytes, MakesForeignBytesHarmless) {
  EXPECT_EQ(quote_bytes("a\r\n\tb\x01"), "\"a\\r\\n\\tb?\"");
  EXPECT_EQ(quote_bytes("abcdef", 3), "\"abc...\"");
  EXPECT_EQ(quote_bytes("\xff"), "\"\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace anvil::net
