#include "wire/sse.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace anvil::wire {
namespace {

std::string show(const SseEvent& event) {
  std::string out = "<" + std::string(event.event) + "|" + std::string(event.data);
  if (!event.id.empty()) out += "|id " + std::string(event.id);
  if (event.retry_ms) out += "|retry " + std::to_string(*event.retry_ms);
  return out + ">";
}

// All events, in a form that can be compared. Every piece gets a buffer of its own that is
// overwritten before the next, so that a view kept too long is seen.
std::string split(const std::vector<std::string_view>& pieces, size_t limit = 1000) {
  SseSplitter splitter(limit);
  std::string out;
  for (std::string_view piece : pieces) {
    std::string buffer(piece);
    const Result<void> fed = splitter.feed(buffer, [&](const SseEvent& event) -> Result<void> {
      out += show(event);
      return {};
    });
    if (!fed) return out + fed.error().detail;
    std::fill(buffer.begin(), buffer.end(), '#');
  }
  return out + (splitter.unfinished() ? "..." : "");
}

std::string in_every_split(std::string_view text, size_t limit = 1000) {
  const std::string whole = split({text}, limit);
  std::vector<std::string_view> bytes;
  for (size_t cut = 0; cut < text.size(); ++cut) {
    EXPECT_EQ(split({text.substr(0, cut), text.substr(cut)}, limit), whole) << "split at " << cut;
    bytes.push_back(text.substr(cut, 1));
  }
  EXPECT_EQ(split(bytes, limit), whole) << "byte by byte";
  return whole;
}

TEST(SseTest, TakesEveryLineEnd) {
  EXPECT_EQ(in_every_split("data: a\n\ndata: b\n\n"), "<|a><|b>");
  EXPECT_EQ(in_every_split("data: a\r\n\r\ndata: b\r\n\r\n"), "<|a><|b>");
  EXPECT_EQ(in_every_split("data: a\r\rdata: b\r\r"), "<|a><|b>");
  EXPECT_EQ(in_every_split("data: a\r\n\rdata: b\n\r\ndata: c\r\n\n"), "<|a><|b><|c>");
}

TEST(SseTest, TakesDataWithAndWithoutSpace) {
  EXPECT_EQ(in_every_split("data:a\n\ndata: b\n\ndata:  c\n\ndata:\td\n\n"), "<|a><|b><| c><|\td>");
}

TEST(SseTest, JoinsSeveralDataLines) {
  EXPECT_EQ(in_every_split("data: a\ndata: b\r\ndata:\rdata\ndata: c\n\n"), "<|a\nb\n\n\nc>");
}

TEST(SseTest, ReadsEveryField) {
  EXPECT_EQ(in_every_split("event: response.completed\ndata: {}\nid: 7\nretry: 3000\n\n"
                           "data: x\n\n"),
            "<response.completed|{}|id 7|retry 3000><|x|id 7>");
  EXPECT_EQ(in_every_split("event: a\nevent: b\ndata: x\nother: y\nevent\n\n"), "<|x>");
  EXPECT_EQ(in_every_split("data: x\nevent: late name\n\n"), "<late name|x>");
  EXPECT_EQ(in_every_split("retry: soon\nretry: -1\ndata: x\n\n"), "<|x>");
}

TEST(SseTest, IgnoresIdsWithNul) {
  using namespace std::string_view_literals;
  EXPECT_EQ(in_every_split("id: 1\nid: a\0b\ndata: x\n\n"sv), "<|x|id 1>");
}

TEST(SseTest, DispatchesOnlyEventsWithData) {
  EXPECT_EQ(in_every_split("event: ping\n\n\n\ndata: x\n\n"), "<|x>");
  EXPECT_EQ(in_every_split("data\n\n"), "<|>");
  EXPECT_EQ(in_every_split("data:\n\n"), "<|>");
  EXPECT_EQ(in_every_split("retry: 5\n\ndata: x\n\n"), "<|x|retry 5>");
}

TEST(SseTest, IgnoresComments) {
  EXPECT_EQ(in_every_split(": ping\n\n:\n\n: x\ndata: a\n: y\n\n"), "<|a>");
  SseSplitter splitter;
  EXPECT_FALSE(splitter.take_comment());
  EXPECT_TRUE(splitter.feed(": keepalive\n\n", [](const SseEvent&) -> Result<void> { return {}; }));
  EXPECT_TRUE(splitter.take_comment());
  EXPECT_FALSE(splitter.take_comment());
}

TEST(SseTest, DropsOneByteOrderMark) {
  EXPECT_EQ(in_every_split("\xEF\xBB\xBF"
                           "data: a\n\n"),
            "<|a>");
  EXPECT_EQ(in_every_split("\xEF\xBB\xBF\xEF\xBB\xBF"
                           "data: a\n\ndata: b\n\n"),
            "<|b>");
  EXPECT_EQ(in_every_split("\xEF\xBB"
                           "data: a\n\ndata: b\n\n"),
            "<|b>");
}

TEST(SseTest, DropsTheUnfinishedEvent) {
  EXPECT_EQ(in_every_split("data: a\n\ndata: b\n"), "<|a>...");
  EXPECT_EQ(in_every_split("data: a\n\ndata: b"), "<|a>...");
}

TEST(SseTest, KeepsBytesThatAreNoUtf8) {
  EXPECT_EQ(in_every_split("data: \xff\xfe\xc3\n\n"), "<|\xff\xfe\xc3>");
}

TEST(SseTest, NamesTheLimit) {
  EXPECT_EQ(in_every_split("data: 0123\n\ndata: 01234\n\n", 10),
            "<|0123>a server-sent event is larger than the limit event_bytes of 10 bytes");
  EXPECT_EQ(in_every_split("data: 0\ndata: 1\n\n", 10),
            "a server-sent event is larger than the limit event_bytes of 10 bytes");
  EXPECT_EQ(in_every_split(": 0123456789", 10),
            "a server-sent event is larger than the limit event_bytes of 10 bytes");
}

TEST(SseTest, DoesNotCopyAnEventThatLiesInOneBuffer) {
  SseSplitter splitter;
  const std::string buffer = "event: e\ndata: payload\n\ndata: second\n\n";
  const auto inside = [&](std::string_view view) {
    return view.data() >= buffer.data() &&
           view.data() + view.size() <= buffer.data() + buffer.size();
  };
  int events = 0;
  EXPECT_TRUE(splitter.feed(buffer, [&](const SseEvent& event) -> Result<void> {
    ++events;
    EXPECT_TRUE(inside(event.data));
    EXPECT_TRUE(event.event.empty() || inside(event.event));
    return {};
  }));
  EXPECT_EQ(events, 2);
}

TEST(SseTest, PassesOnTheErrorOfTheSink) {
  SseSplitter splitter;
  const Result<void> fed = splitter.feed("data: a\n\ndata: b\n\n", [](const SseEvent& event) {
    return event.data == "a" ? fail(Kind::kProtocol, Side::kUpstream, "no") : Result<void>();
  });
  ASSERT_FALSE(fed.has_value());
  EXPECT_EQ(fed.error().detail, "no");
}

TEST(SseTest, ForgetsEverythingOnReset) {
  SseSplitter splitter;
  SseEvent event;
  std::string_view input = "id: 9\ndata: half";
  EXPECT_FALSE(*splitter.next(input, event));
  splitter.reset();
  input =
      "\xEF\xBB\xBF"
      "data: a\n\n";
  EXPECT_TRUE(*splitter.next(input, event));
  EXPECT_EQ(show(event), "<|a>");
}

}  // namespace
}  // namespace anvil::wire
