#include "wire/chunked.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace anvil::wire {
namespace {

// Payload, bytes behind the end, and the verdict, for a body that arrives in the given pieces.
std::string decode(const std::vector<std::string_view>& pieces) {
  ChunkedDecoder decoder;
  std::string payload;
  std::string rest;
  for (std::string_view piece : pieces) {
    while (!piece.empty()) {
      const Result<ChunkedDecoder::Step> step = decoder.next(piece);
      if (!step) return payload + "|" + step.error().detail;
      payload += step->payload;
      piece.remove_prefix(step->consumed);
      if (step->done) {
        rest += piece;
        break;
      }
    }
  }
  return payload + (decoder.done() ? "|done|" + rest : "|more");
}

std::string in_every_split(std::string_view text) {
  const std::string whole = decode({text});
  std::vector<std::string_view> bytes;
  for (size_t cut = 0; cut < text.size(); ++cut) {
    EXPECT_EQ(decode({text.substr(0, cut), text.substr(cut)}), whole) << "split at " << cut;
    bytes.push_back(text.substr(cut, 1));
  }
  EXPECT_EQ(decode(bytes), whole) << "byte by byte";
  return whole;
}

TEST(ChunkedTest, HandsOutPayload) {
  EXPECT_EQ(in_every_split("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\nNEXT"), "hello world|done|NEXT");
  EXPECT_EQ(in_every_split("0\r\n\r\n"), "|done|");
  EXPECT_EQ(in_every_split("A\r\n0123456789\r\n0a\r\nabcdefghij\r\n00\r\n\r\n"),
            "0123456789abcdefghij|done|");
  EXPECT_EQ(in_every_split("2\r\n\r\n\r\n0\r\n\r\n"), "\r\n|done|");
}

TEST(ChunkedTest, DropsExtensionsAndTrailers) {
  EXPECT_EQ(in_every_split("5;a=b;c=\"d e\"\r\nhello\r\n0;last\r\nX-Sum: 1\r\nY:\r\n\r\n"),
            "hello|done|");
  EXPECT_EQ(in_every_split("5 \t; a\r\nhello\r\n0\r\n\r\n"), "hello|done|");
}

TEST(ChunkedTest, WaitsForTheEnd) {
  for (const char* text : {"5\r\nhel", "5\r\nhello", "5\r\nhello\r\n", "0\r\n", "0\r\n\r"}) {
    EXPECT_TRUE(in_every_split(text).ends_with("|more")) << text;
  }
}

TEST(ChunkedTest, RefusesBrokenFraming) {
  using namespace std::string_view_literals;
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"x\r\n", "chunk size is missing"},
      {"\r\n", "chunk size is missing"},
      {"-5\r\nhello\r\n", "chunk size is missing"},
      {"0x5\r\nhello\r\n", "unexpected byte in the chunk size"},
      {"5 \r\nhello\r\n", "unexpected byte in the chunk size"},
      {"5\nhello\r\n", "unexpected byte in the chunk size"},
      {"5\rhello\r\n", "CR without LF behind a chunk size"},
      {"5\r\nhelloX", "not followed by CRLF"},
      {"5\r\nhello\n", "not followed by CRLF"},
      {"5\r\nhello\rX", "not followed by CRLF"},
      {"1000000000000000\r\n", "too large"},
      {"FFFFFFFFFFFFFFFFF\r\n", "too large"},
      {"00000000000000000005\r\nhello\r\n", "too large"},
      {"5;a=\"b\nc\"\r\nhello\r\n", "control byte in a chunk extension"},
      {"5;\0\r\nhello\r\n"sv, "control byte in a chunk extension"},
      {"0\r\nA b: c\r\n\r\n", "malformed trailer"},
      {"0\r\n: c\r\n\r\n", "malformed trailer"},
      {"0\r\nno colon\r\n\r\n", "malformed trailer"},
      {"0\r\nA: b\n\r\n", "control byte in a trailer"},
      {"0\r\nA: b\rX", "CR without LF behind a trailer"},
      {"0\r\n\rX", "last chunk is not followed by CRLF"},
  };
  for (const auto& [text, reason] : kCases) {
    const std::string got = in_every_split(text);
    EXPECT_NE(got.find(reason), std::string::npos) << text << " -> " << got;
  }
}

TEST(ChunkedTest, BoundsExtensionsAndTrailers) {
  EXPECT_NE(decode({"5;" + std::string(20'000, 'a')}).find("extension is too long"),
            std::string::npos);
  EXPECT_NE(decode({"0\r\nA: " + std::string(70'000, 'a')}).find("trailers are too long"),
            std::string::npos);
}

TEST(ChunkedTest, CanBeUsedAgain) {
  ChunkedDecoder decoder;
  EXPECT_TRUE(decoder.next("0\r\n\r\n")->done);
  EXPECT_EQ(decoder.next("5\r\n")->consumed, 0u);
  decoder.reset();
  EXPECT_EQ(decoder.next("5\r\nhello")->payload, "hello");
}

}  // namespace
}  // namespace anvil::wire
