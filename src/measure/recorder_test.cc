#include "measure/recorder.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace anvil::measure {
namespace {

using evidence::Outcome;
using evidence::RequestRow;

const std::string kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n";

std::string event(const std::string& data) {
  return "data: " + data + "\n\n";
}
// A chat chunk with that delta; `more` stands beside "choices".
std::string delta(const std::string& inner, const std::string& more = "") {
  return event(R"({"id":"c1","model":"m","choices":[{"index":0,"delta":{)" + inner +
               R"(},"finish_reason":null}])" + more + "}");
}
std::string content(const std::string& text, const std::string& more = "") {
  return delta(R"("content":")" + text + "\"", more);
}
std::string usage_count(int n) {
  return R"(,"usage":{"prompt_tokens":9,"completion_tokens":)" + std::to_string(n) + "}";
}
std::string usage_event(int n) {
  return event(R"({"id":"c1","choices":[])" + usage_count(n) + "}");
}
const std::string kRole = delta(R"("role":"assistant","content":"")");
const std::string kFinish = event(R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})");
const std::string kDone = event("[DONE]");

enum class End { kOpen, kClose, kReset };

// Plays pieces that arrive at the given milliseconds after the request was sent (at second 1).
RequestRow play(const std::vector<std::pair<double, std::string>>& pieces, End end = End::kClose,
                RequestRow row = {}, Limits limits = {}) {
  Recorder recorder(limits);
  recorder.begin(row);
  row.stamps.sent = kSecond;
  Nanos at = kSecond;
  for (const auto& [ms, bytes] : pieces) {
    at = kSecond + static_cast<Nanos>(ms * kMillisecond);
    recorder.on_bytes(bytes, at);
  }
  if (end == End::kClose) recorder.on_closed(at);
  if (end == End::kReset) recorder.on_failed(Error(Kind::kReset, Side::kUpstream, "reset"));
  EXPECT_EQ(recorder.finished(), end != End::kOpen || row.outcome != Outcome::kOk);
  return row;
}

double ms(const RequestRow& row, const std::optional<Nanos>& stamp) {
  return stamp ? static_cast<double>(*stamp - *row.stamps.sent) / kMillisecond : -1;
}

TEST(Recorder, StampsTheReferenceStream) {
  const RequestRow row = play({{1, kStreamHead},
                               {5, kRole},
                               {100, content("one two three four")},
                               {140, content(" five")},
                               {180, content(" six")},
                               {220, content(" seven")},
                               {260, content(" eight")},
                               {262, kFinish},
                               {264, usage_event(20)},
                               {265, kDone}});
  EXPECT_EQ(row.outcome, Outcome::kOk) << row.error_detail;
  EXPECT_EQ(row.status, 200);
  EXPECT_EQ(ms(row, row.stamps.first_byte), 1);
  EXPECT_EQ(ms(row, row.stamps.first_event), 5);
  EXPECT_EQ(ms(row, row.stamps.first_output), 100);
  EXPECT_EQ(ms(row, row.stamps.first_visible), 100);
  EXPECT_EQ(ms(row, row.stamps.last_output), 260);
  EXPECT_EQ(ms(row, row.stamps.usage), 264);
  EXPECT_EQ(ms(row, row.stamps.done), 265);
  EXPECT_EQ(ms(row, row.stamps.eof), 265);
  ASSERT_EQ(row.chunks.size(), 5u);
  EXPECT_EQ(row.chunks[0].since_sent, 100 * kMillisecond);
  EXPECT_EQ(row.chunks[4].since_sent, 260 * kMillisecond);
  EXPECT_EQ(row.chunks[0].kind, 'c');
  EXPECT_EQ(row.chunks[0].bytes, 18u);
  EXPECT_FALSE(row.chunks[0].tokens) << "a total at the end says nothing about one chunk";
  EXPECT_EQ(row.answer.content, "one two three four five six seven eight");
  EXPECT_EQ(row.answer.finish, "stop");
  EXPECT_EQ(row.answer.usage.completion, 20);
  EXPECT_EQ(row.token_source, "usage");
}

TEST(Recorder, ARoleOnlyOrNullChunkIsNoOutput) {
  for (const char* inner :
       {R"("role":"assistant","content":"")", R"("role":"assistant","content":null)",
        R"("role":"assistant")", R"("content":null,"reasoning":null,"reasoning_content":"")"}) {
    const RequestRow row =
        play({{1, kStreamHead}, {5, delta(inner)}, {100, content("x")}, {101, kDone}});
    EXPECT_EQ(ms(row, row.stamps.first_event), 5) << inner;
    EXPECT_EQ(ms(row, row.stamps.first_output), 100) << inner;
    EXPECT_EQ(row.chunks.size(), 1u) << inner;
  }
}

TEST(Recorder, ReasoningIsOutputAndNotVisible) {
  for (const char* name : {"reasoning", "reasoning_content", "thinking"}) {
    const RequestRow row = play({{1, kStreamHead},
                                 {50, delta("\"" + std::string(name) + "\":\"hm\"")},
                                 {400, content("yes")},
                                 {401, kDone}});
    EXPECT_EQ(ms(row, row.stamps.first_output), 50) << name;
    EXPECT_EQ(ms(row, row.stamps.first_visible), 400) << name;
    EXPECT_EQ(row.answer.reasoning, "hm");
    ASSERT_EQ(row.chunks.size(), 2u) << name;
    EXPECT_EQ(row.chunks[0].kind, 'r');
    EXPECT_EQ(row.chunks[1].kind, 'c');
  }
}

TEST(Recorder, ToolCallsAreVisibleOutput) {
  const RequestRow row = play(
      {{1, kStreamHead},
       {10,
        delta(R"("tool_calls":[{"index":0,"id":"t1","function":{"name":"add","arguments":""}}])")},
       {20, delta(R"("tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}])")},
       {30, delta(R"("content":"so","tool_calls":[{"index":0,"function":{"arguments":"1}"}}])")},
       {31, kDone}});
  EXPECT_EQ(ms(row, row.stamps.first_visible), 10);
  ASSERT_EQ(row.chunks.size(), 3u);
  EXPECT_EQ(row.chunks[0].kind, 't');
  EXPECT_EQ(row.chunks[2].kind, 'm');
  ASSERT_EQ(row.answer.tool_calls.size(), 1u);
  EXPECT_EQ(row.answer.tool_calls[0].name, "add");
  EXPECT_EQ(row.answer.tool_calls[0].arguments, R"({"a":1})");
}

TEST(Recorder, CountsTokensOfChunksFromContinuousUsage) {
  std::vector<std::pair<double, std::string>> pieces = {
      {1, kStreamHead},
      {5, delta(R"("role":"assistant","content":"")", usage_count(0))},
      {100, content("eight at once", usage_count(8))}};
  for (int i = 1; i <= 12; ++i) pieces.emplace_back(100 + 10 * i, content("x", usage_count(8 + i)));
  pieces.emplace_back(221, usage_event(20));
  pieces.emplace_back(222, kDone);
  const RequestRow row = play(pieces);
  ASSERT_EQ(row.chunks.size(), 13u);
  EXPECT_EQ(row.chunks[0].tokens, 8);
  for (size_t i = 1; i < row.chunks.size(); ++i) EXPECT_EQ(row.chunks[i].tokens, 1);
  EXPECT_EQ(row.answer.usage.completion, 20);
}

TEST(Recorder, ACountThatComesOnceIsNotGivenToOneChunk) {
  const RequestRow row = play({{1, kStreamHead},
                               {10, content("a")},
                               {20, content("b", usage_count(7))},
                               {30, content("c", usage_count(9))},
                               {31, kDone}});
  ASSERT_EQ(row.chunks.size(), 3u);
  EXPECT_FALSE(row.chunks[0].tokens);
  EXPECT_FALSE(row.chunks[1].tokens);
  EXPECT_EQ(row.chunks[2].tokens, 2);
}

TEST(Recorder, AnAnswerInOneChunk) {
  const RequestRow row =
      play({{1, kStreamHead}, {300, content("all of it", usage_count(36)) + kFinish + kDone}});
  EXPECT_EQ(row.outcome, Outcome::kOk);
  EXPECT_EQ(ms(row, row.stamps.first_output), 300);
  EXPECT_EQ(row.stamps.last_output, row.stamps.first_output);
  ASSERT_EQ(row.chunks.size(), 1u);
  EXPECT_EQ(row.chunks[0].tokens, 36);
}

TEST(Recorder, WithoutUsageTheRowSaysSo) {
  const RequestRow row = play({{1, kStreamHead}, {10, content("a")}, {11, kDone}});
  EXPECT_EQ(row.token_source, "none");
  EXPECT_FALSE(row.answer.usage.completion);
}

TEST(Recorder, UsageWithEmptyTextAndEngineTimings) {
  const RequestRow row =
      play({{1, kStreamHead}, {10, content("a")}, {20, content("", usage_count(7))}, {21, kDone}});
  EXPECT_EQ(row.answer.usage.completion, 7);
  EXPECT_EQ(ms(row, row.stamps.last_output), 10);
  EXPECT_EQ(row.chunks.size(), 1u);

  const RequestRow timed =
      play({{1, kStreamHead},
            {10, content("a")},
            {20, event(R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],)"
                       R"("timings":{"prompt_n":5,"predicted_n":3,"predicted_ms":30.5}})")},
            {21, kDone}});
  EXPECT_EQ(timed.token_source, timed.answer.usage.completion ? "usage" : "timings");
  ASSERT_TRUE(timed.answer.timings);
  EXPECT_EQ(timed.answer.timings->predicted_n, 3);
}

TEST(Recorder, TrailingUsageDoesNotMoveTheLastOutput) {
  const RequestRow row = play({{1, kStreamHead},
                               {10, content("a")},
                               {20, content("b")},
                               {220, usage_event(2)},
                               {221, kDone}});
  EXPECT_EQ(ms(row, row.stamps.last_output), 20);
  EXPECT_EQ(ms(row, row.stamps.usage), 220);
}

TEST(Recorder, EventsOfOneReadShareItsStamp) {
  const RequestRow row =
      play({{1, kStreamHead}, {10, content("a") + content("b") + content("c")}, {11, kDone}});
  ASSERT_EQ(row.chunks.size(), 3u);
  EXPECT_EQ(row.chunks[0].since_sent, row.chunks[2].since_sent);
  EXPECT_EQ(row.answer.content, "abc");
}

TEST(Recorder, EveryByteSplitGivesTheSameRow) {
  const std::string crlf =
      "\xef\xbb\xbf: ping\r\n\r\ndata:{\"choices\":[{\"index\":0,\"delta\":{"
      "\"content\":\"caf\xc3\xa9 au  lait\"}}]}\r\n\r\n: ping\r\n\r\n"
      "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" !\"},"
      "\"finish_reason\":\"stop\"}],\"usage\":{\"completion_tokens\":4}}"
      "\r\n\r\ndata: [DONE]\r\n\r\n";
  std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (size_t at = 0; at < crlf.size(); at += 50) {
    const std::string piece = crlf.substr(at, 50);
    char size[16];
    snprintf(size, sizeof size, "%zx\r\n", piece.size());
    chunked += size + piece + "\r\n";
  }
  chunked += "0\r\n\r\n";
  for (size_t cut = 0; cut <= chunked.size(); ++cut) {
    const RequestRow row = play({{1, chunked.substr(0, cut)}, {2, chunked.substr(cut)}});
    ASSERT_EQ(row.outcome, Outcome::kOk) << cut << ": " << row.error_detail;
    ASSERT_EQ(row.answer.content, "caf\xc3\xa9 au  lait !") << cut;
    ASSERT_EQ(row.chunks.size(), 2u) << cut;
    ASSERT_EQ(row.answer.usage.completion, 4) << cut;
    ASSERT_TRUE(row.stamps.eof && row.stamps.done && row.stamps.usage) << cut;
  }
}

TEST(Recorder, CommentsAreNoEvents) {
  const RequestRow row =
      play({{1, kStreamHead}, {15, ": ping\n\n"}, {30, ": ping\n\n"}, {40, content("a") + kDone}});
  EXPECT_EQ(ms(row, row.stamps.first_event), 40);
  EXPECT_EQ(ms(row, row.stamps.first_byte), 1);
}

TEST(Recorder, AnErrorInsideAStreamIsAFailure) {
  const std::string error =
      event(R"({"error":{"message":"out of memory","type":"server_error","code":500}})");
  for (const auto& rest : {error + kDone, error}) {
    const RequestRow row = play({{1, kStreamHead}, {10, content("a")}, {20, rest}});
    EXPECT_EQ(row.outcome, Outcome::kErrorInStream);
    EXPECT_EQ(row.error_kind, "upstream_error");
    EXPECT_NE(row.error_detail.find("out of memory"), std::string::npos);
    ASSERT_TRUE(row.answer.error);
    EXPECT_EQ(row.answer.content, "a") << "what came before stays";
  }
}

TEST(Recorder, AStreamWithoutItsMarkerIsTruncated) {
  const std::string chunked_head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  struct {
    std::vector<std::pair<double, std::string>> pieces;
    End end;
    const char* says;
  } cases[] = {
      {{{1, kStreamHead}, {10, content("a")}, {20, kFinish}}, End::kClose, "terminal marker"},
      {{{1, kStreamHead}}, End::kClose, "before any event"},
      {{{1, kStreamHead}, {10, content("a")}, {20, "data: {\"cho"}},
       End::kClose,
       "middle of an event"},
      {{{1, kStreamHead}, {10, content("a")}}, End::kReset, "reset"},
      {{{1, chunked_head}, {10, "100\r\n" + content("a")}}, End::kClose, "before the last chunk"},
      {{{1, "HTTP/1.1 20"}}, End::kClose, "inside the head"},
      {{}, End::kClose, "before any byte"},
  };
  for (const auto& c : cases) {
    const RequestRow row = play(c.pieces, c.end);
    EXPECT_EQ(row.outcome, Outcome::kTruncated) << c.says;
    EXPECT_EQ(row.error_kind, "reset");
    EXPECT_NE(row.error_detail.find(c.says), std::string::npos) << row.error_detail;
    if (row.stamps.first_output) {
      EXPECT_EQ(row.answer.content, "a");
    }
  }
}

TEST(Recorder, AResetAfterTenOfManyKeepsWhatCame) {
  std::vector<std::pair<double, std::string>> pieces = {{1, kStreamHead}};
  for (int i = 0; i < 10; ++i) pieces.emplace_back(10 + i, content("x", usage_count(i + 1)));
  const RequestRow row = play(pieces, End::kReset);
  EXPECT_EQ(row.outcome, Outcome::kTruncated);
  EXPECT_EQ(row.chunks.size(), 10u);
  EXPECT_EQ(ms(row, row.stamps.last_output), 19);
  EXPECT_FALSE(row.stamps.done);
  EXPECT_EQ(row.answer.usage.completion, 10);
}

TEST(Recorder, AfterTheMarkerACloseOfAnyKindIsFine) {
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string body = content("a") + kDone;
  char size[16];
  snprintf(size, sizeof size, "%zx\r\n", body.size());
  for (const End end : {End::kClose, End::kReset}) {
    const RequestRow row = play({{1, head + size + body}}, end);
    EXPECT_EQ(row.outcome, Outcome::kOk) << row.error_detail;
  }
}

TEST(Recorder, RefusesWhatBreaksTheProtocols) {
  struct {
    std::string bytes;
    const char* says;
  } cases[] = {
      {kStreamHead + "data: {not json}\n\n", "not json"},
      {kStreamHead + "data: \"text\"\n\n", "text"},
      {"garbage\r\n\r\n", "garbage"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "xyz"},
      {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n",
       "gzip"},
      {"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<hi>", "<hi>"},
      {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 29\r\n\r\n"
       "{\"choices\":[],\"object\":\"abc\"}",
       "a stream was asked for"},
  };
  for (const auto& c : cases) {
    const RequestRow row = play({{1, c.bytes}});
    EXPECT_EQ(row.outcome, Outcome::kProtocolError) << c.bytes;
    EXPECT_EQ(row.error_kind, "protocol") << c.bytes;
    EXPECT_NE(row.error_detail.find(c.says), std::string::npos) << row.error_detail;
  }
}

TEST(Recorder, ReadsErrorStatuses) {
  const std::string body = R"({"error":{"message":"queue full","type":"overloaded","code":"q"}})";
  const RequestRow row = play({{1, "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: " +
                                       std::to_string(body.size()) + "\r\n\r\n" + body}});
  EXPECT_EQ(row.outcome, Outcome::kHttpError);
  EXPECT_EQ(row.error_kind, "http_status");
  EXPECT_EQ(row.status, 503);
  for (const char* part : {"503", "queue full", "Retry-After: 7"})
    EXPECT_NE(row.error_detail.find(part), std::string::npos) << row.error_detail;
  ASSERT_TRUE(row.answer.error);
  EXPECT_EQ(row.answer.error->message, "queue full");
  EXPECT_FALSE(row.stamps.first_output);

  const RequestRow plain = play({{1, "HTTP/1.1 404 No\r\n\r\nno such model"}});
  EXPECT_EQ(plain.outcome, Outcome::kHttpError);
  EXPECT_NE(plain.error_detail.find("no such model"), std::string::npos);

  const RequestRow cut = play({{1, "HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\noops"}});
  EXPECT_EQ(cut.outcome, Outcome::kHttpError) << "the status stands, whatever the body did";

  const RequestRow moved = play({{1, "HTTP/1.1 302 Go\r\nContent-Length: 0\r\n\r\n"}});
  EXPECT_EQ(moved.outcome, Outcome::kHttpError);

  const RequestRow endless =
      play({{1, "HTTP/1.1 500 No\r\n\r\n"}, {2, std::string(1u << 20, 'x')}});
  EXPECT_EQ(endless.outcome, Outcome::kHttpError);
}

TEST(Recorder, ReadsUnaryAnswers) {
  const std::string body =
      R"({"id":"c","model":"m","choices":[{"index":0,"finish_reason":"stop","message":)"
      R"({"role":"assistant","content":"hi"}}],"usage":{"prompt_tokens":5,"completion_tokens":2}})";
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
                           std::to_string(body.size()) + "\r\n\r\n";
  RequestRow plan;
  plan.stream = false;
  const RequestRow row =
      play({{50, head}, {60, body.substr(0, 9)}, {70, body.substr(9)}}, End::kClose, plan);
  EXPECT_EQ(row.outcome, Outcome::kOk) << row.error_detail;
  EXPECT_EQ(ms(row, row.stamps.first_byte), 50);
  EXPECT_EQ(ms(row, row.stamps.first_output), 70);
  EXPECT_EQ(row.stamps.first_visible, row.stamps.first_output);
  EXPECT_EQ(row.stamps.last_output, row.stamps.first_output);
  EXPECT_EQ(row.stamps.eof, row.stamps.first_output);
  EXPECT_EQ(row.answer.content, "hi");
  EXPECT_EQ(row.token_source, "usage");
  EXPECT_TRUE(row.chunks.empty());

  const RequestRow cut = play({{50, head}, {60, body.substr(0, 9)}}, End::kClose, plan);
  EXPECT_EQ(cut.outcome, Outcome::kTruncated);
  const RequestRow html = play({{50, "HTTP/1.1 200 OK\r\n\r\n<html>"}}, End::kClose, plan);
  EXPECT_EQ(html.outcome, Outcome::kProtocolError);
  EXPECT_NE(html.error_detail.find("<html>"), std::string::npos) << html.error_detail;
  const RequestRow error =
      play({{50, "HTTP/1.1 200 OK\r\n\r\n{\"error\":{\"message\":\"no\"}}"}}, End::kClose, plan);
  EXPECT_EQ(error.outcome, Outcome::kErrorInStream);
}

TEST(Recorder, AnErrorBodyInsteadOfAStreamIsReported) {
  const std::string body = R"({"error":{"message":"bad template"}})";
  const RequestRow row =
      play({{1, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body}});
  EXPECT_EQ(row.outcome, Outcome::kErrorInStream);
  EXPECT_NE(row.error_detail.find("bad template"), std::string::npos);
}

TEST(Recorder, BoundsEventsAndBodies) {
  Limits limits;
  limits.event_bytes = 1000;
  limits.body_bytes = 1500;
  const RequestRow event_row =
      play({{1, kStreamHead}, {2, content(std::string(2000, 'x'))}}, End::kClose, {}, limits);
  EXPECT_EQ(event_row.outcome, Outcome::kTooLarge);
  EXPECT_EQ(event_row.error_kind, "too_large");

  const std::string piece = content(std::string(800, 'x'));
  const RequestRow text = play({{1, kStreamHead}, {2, piece}, {3, piece}}, End::kClose, {}, limits);
  EXPECT_EQ(text.outcome, Outcome::kTooLarge);
  EXPECT_NE(text.error_detail.find("body_bytes"), std::string::npos);

  RequestRow plan;
  plan.stream = false;
  const RequestRow body =
      play({{1, "HTTP/1.1 200 OK\r\n\r\n" + std::string(2000, ' ')}}, End::kClose, plan, limits);
  EXPECT_EQ(body.outcome, Outcome::kTooLarge);
}

TEST(Recorder, SpeaksCompletionsAndResponses) {
  RequestRow plan;
  plan.api = wire::Api::kCompletions;
  const RequestRow text = play({{1, kStreamHead},
                                {10, event(R"({"choices":[{"index":0,"text":"Par"}]})")},
                                {20, event(R"({"choices":[{"index":0,"text":"is"}]})")},
                                {21, kDone}},
                               End::kClose, plan);
  EXPECT_EQ(text.outcome, Outcome::kOk) << text.error_detail;
  EXPECT_EQ(text.answer.content, "Paris");
  EXPECT_EQ(text.chunks.size(), 2u);

  plan.api = wire::Api::kResponses;
  const auto typed = [](const std::string& type, const std::string& more) {
    return "event: " + type + "\ndata: {\"type\":\"" + type + "\"" + more + "}\n\n";
  };
  const std::string created = typed("response.created", R"(,"response":{"id":"r1","model":"m"})");
  const std::string part = typed("response.output_text.delta", R"(,"delta":"Paris")");
  const std::string completed = typed(
      "response.completed",
      R"(,"response":{"id":"r1","status":"completed","usage":{"input_tokens":4,"output_tokens":1}})");
  const RequestRow row =
      play({{1, kStreamHead}, {5, created}, {10, part}, {20, completed}}, End::kClose, plan);
  EXPECT_EQ(row.outcome, Outcome::kOk) << row.error_detail;
  EXPECT_EQ(row.answer.content, "Paris");
  EXPECT_EQ(ms(row, row.stamps.first_event), 5);
  EXPECT_EQ(ms(row, row.stamps.done), 20);
  EXPECT_EQ(row.answer.usage.completion, 1);
  const RequestRow cut = play({{1, kStreamHead}, {5, created}, {10, part}}, End::kClose, plan);
  EXPECT_EQ(cut.outcome, Outcome::kTruncated);
}

TEST(Recorder, KnowsWhenTheConnectionCanGoOn) {
  const std::string body = content("a") + kDone;
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
  const std::string sized = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  struct {
    std::string bytes;
    bool reusable;
  } cases[] = {{head + sized, true},
               {head + "Connection: close\r\n" + sized, false},
               {head + sized + "HTTP/1.1 200 OK\r\n", false},
               {"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno", true}};
  for (const auto& c : cases) {
    RequestRow row;
    const Limits limits;
    Recorder recorder(limits);
    recorder.begin(row);
    recorder.on_bytes(c.bytes, kSecond);
    EXPECT_TRUE(recorder.finished());
    EXPECT_EQ(recorder.reusable(), c.reusable) << c.bytes;
  }
}

TEST(Recorder, MapsEveryKindToOneOutcome) {
  EXPECT_EQ(outcome_of(Kind::kConnect), Outcome::kConnectFailed);
  EXPECT_EQ(outcome_of(Kind::kPermission), Outcome::kConnectFailed);
  EXPECT_EQ(outcome_of(Kind::kInvalidInput), Outcome::kConnectFailed);
  EXPECT_EQ(outcome_of(Kind::kTimeout), Outcome::kTimeout);
  EXPECT_EQ(outcome_of(Kind::kCancelled), Outcome::kCancelled);
  EXPECT_EQ(outcome_of(Kind::kProtocol), Outcome::kProtocolError);
  EXPECT_EQ(outcome_of(Kind::kTooLarge), Outcome::kTooLarge);
  EXPECT_EQ(outcome_of(Kind::kReset), Outcome::kTruncated);
  EXPECT_EQ(outcome_of(Kind::kHttpStatus), Outcome::kHttpError);
  EXPECT_EQ(outcome_of(Kind::kUpstreamError), Outcome::kErrorInStream);
}

}  // namespace
}  // namespace anvil::measure
