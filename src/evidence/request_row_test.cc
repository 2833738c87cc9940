#include "evidence/request_row.h"

#include <gtest/gtest.h>

#include "base/hash.h"
#include "evidence/testing/synthetic_run.h"

namespace anvil::evidence {
namespace {

RequestRow full_row() {
  RequestRow row = testing::synthetic_row({.chunks = 3, .count_chunks = true});
  row.seq = 17;
  row.purpose = Purpose::kLadder;
  row.item = "0.5";
  row.attempt = 2;
  row.effort = "high";
  row.api = wire::Api::kResponses;
  row.stream = false;
  row.concurrency = 8;
  row.cache_state = "prefix";
  row.arrival = "session";
  row.turn = 3;
  row.stamps.dns_begin = 11;
  row.stamps.resolved = 12;
  row.stamps.tls_begin = 13;
  row.stamps.tls_done = 14;
  row.stamp_source = "kernel";
  row.late_in_batch = 2;
  row.connection_reused = true;
  row.status = 503;
  row.request_body = "{\"a\":\"b\\n\"}";
  row.chunks[1].kind = 't';
  row.chunks[2].tokens.reset();
  row.answer.system_fingerprint = "fp";
  row.answer.reasoning = "because \"quotes\" \\ and \x01 control";
  row.answer.content = "caf\xc3\xa9\n\ttab";
  row.answer.refusal = "no";
  row.answer.tool_calls = {{"call_1", "weather", "{\"zip\":\"98101\"}"}};
  row.answer.usage.reasoning = 2;
  row.answer.usage.total = 515;
  row.answer.timings = wire::EngineTimings{5, 507, 3, 10, 7, 12.5, 0.1};
  row.answer.error = wire::ReportedError{"boom", "server_error", "500"};
  row.token_source = "timings";
  row.outcome = Outcome::kErrorInStream;
  row.error_kind = "upstream_error";
  row.error_detail = "boom";
  row.expect = Json{{"code", "A-1"}, {"depth", 0.5}};
  return row;
}

TEST(RequestRow, EveryFieldSurvivesTheRoundTrip) {
  const RequestRow row = full_row();
  const std::string line = to_line(row);
  const auto back = parse_row(line);
  ASSERT_TRUE(back) << back.error().detail;
  EXPECT_EQ(to_line(*back), line);
  EXPECT_EQ(back->seq, 17);
  EXPECT_EQ(back->purpose, Purpose::kLadder);
  EXPECT_EQ(back->api, wire::Api::kResponses);
  EXPECT_EQ(back->outcome, Outcome::kErrorInStream);
  EXPECT_EQ(back->answer.reasoning, row.answer.reasoning);
  EXPECT_EQ(back->answer.content, row.answer.content);
  EXPECT_EQ(back->answer.tool_calls, row.answer.tool_calls);
  EXPECT_EQ(back->answer.usage, row.answer.usage);
  EXPECT_EQ(back->answer.timings->prompt_ms, 12.5);
  EXPECT_EQ(back->answer.timings->predicted_ms, 0.1);
  EXPECT_EQ(back->answer.error->code, "500");
  EXPECT_EQ(back->chunks.size(), 3u);
  EXPECT_EQ(back->chunks[1].kind, 't');
  EXPECT_EQ(back->chunks[0].tokens, 1);
  EXPECT_FALSE(back->chunks[2].tokens);
  EXPECT_EQ(back->expect, row.expect);
  EXPECT_EQ(back->stamps.eof, row.stamps.eof);
  EXPECT_EQ(back->stamps.dns_begin, 11);
  EXPECT_EQ(back->stamps.resolved, 12);
  EXPECT_EQ(back->stamps.tls_begin, 13);
  EXPECT_EQ(back->stamps.tls_done, 14);
  EXPECT_EQ(back->arrival, "session");
  EXPECT_EQ(back->turn, 3);
  EXPECT_EQ(back->stamp_source, "kernel");
  EXPECT_EQ(back->late_in_batch, 2);
}

TEST(RequestRow, AbsentStampsStayAbsent) {
  RequestRow row;
  row.outcome = Outcome::kConnectFailed;
  const auto back = parse_row(to_line(row));
  ASSERT_TRUE(back) << back.error().detail;
  EXPECT_FALSE(back->stamps.sent);
  EXPECT_FALSE(back->stamps.first_output);
  EXPECT_TRUE(back->expect.is_null());
  EXPECT_FALSE(back->answer.timings);
  EXPECT_FALSE(back->stamps.resolved);
  EXPECT_FALSE(back->late_in_batch);
  EXPECT_FALSE(back->turn);
  EXPECT_EQ(back->stamp_source, "");
}

TEST(RequestRow, LineIsOneLineWithAFinalSeal) {
  const std::string line = to_line(full_row());
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const size_t seal = line.rfind(",\"row_sha\":\"");
  ASSERT_NE(seal, std::string::npos);
  EXPECT_EQ(line.substr(seal + 12, 16), base::sha256(line.substr(0, seal)).substr(0, 16));
}

TEST(RequestRow, InvalidUtf8BecomesReplacementCharacters) {
  RequestRow row;
  row.answer.content = "a\xff";
  const auto back = parse_row(to_line(row));
  ASSERT_TRUE(back) << back.error().detail;
  EXPECT_EQ(back->answer.content, "a\xef\xbf\xbd");
}

TEST(RequestRow, EveryFlippedByteIsNoticed) {
  const std::string line = to_line(full_row());
  for (size_t i = 0; i + 1 < line.size(); ++i) {
    std::string damaged = line;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_FALSE(parse_row(damaged)) << "byte " << i;
  }
}

TEST(RequestRow, EveryTruncationIsAnError) {
  const std::string line = to_line(full_row());
  for (size_t i = 0; i + 1 < line.size(); ++i) EXPECT_FALSE(parse_row(line.substr(0, i)));
}

// A line whose row_sha is right, whatever stands before it.
std::string sealed(const std::string& body) {
  return body + ",\"row_sha\":\"" + base::sha256(body).substr(0, 16) + "\"}\n";
}

std::string chunks(const std::string& array) {
  return R"({"seq":0,"purpose":"lane","stamps":{},"chunks":)" + array + R"(,"outcome":"ok")";
}

TEST(RequestRow, ChunksAsTheWriterSpellsThem) {
  const auto row = parse_row(
      sealed(chunks(R"([[-5,"m",0,null],[0,"r",4294967295,7],[123456789012345678,"t",1,-1]])")));
  ASSERT_TRUE(row) << row.error().detail;
  ASSERT_EQ(row->chunks.size(), 3u);
  EXPECT_EQ(row->chunks[0].since_sent, -5);
  EXPECT_FALSE(row->chunks[0].tokens);
  EXPECT_EQ(row->chunks[1].bytes, 4294967295u);
  EXPECT_EQ(row->chunks[1].tokens, 7);
  EXPECT_EQ(row->chunks[2].since_sent, 123456789012345678);
  for (const char* bad :
       {"[[1,\"c\",2,null]", "[[1, \"c\",2,null]]", "[[01,\"c\",2,null]]", "[[-0,\"c\",2,null]]",
        "[[,\"c\",2,null]]", "[[1,\"c\",2,nul]]", "[[1,\"c\",-2,null]]", "[[1,\"cc\",2,null]]",
        "[[1,\"c\",2,null],]", "[1]", "{}", "null", "[[1234567890123456789,\"c\",2,null]]",
        "[[1.5,\"c\",2,null]]", "[[1,\"c\",2,1e3]]", "[", "[["})
    EXPECT_FALSE(parse_row(sealed(chunks(bad)))) << bad;
}

TEST(RequestRow, ExpectHoldsAnyJson) {
  RequestRow row;
  row.expect = Json::parse(
      R"({"a":[1,-2,18446744073709551615,0.5,1.0,1e300],"b":{"c":{"d":[]}},"e":"\u00e9\n","f":true,"g":null,"\"h":{}})");
  const auto back = parse_row(to_line(row));
  ASSERT_TRUE(back) << back.error().detail;
  EXPECT_EQ(back->expect, row.expect);
  EXPECT_EQ(base::canonical(back->expect), base::canonical(row.expect));
  row.expect = Json{{"deep", nullptr}};
  for (Json* at = &row.expect["deep"]; row.expect.dump().size() < 800;)
    at = &(*at = Json::array({nullptr}))[0];
  EXPECT_FALSE(parse_row(to_line(row)));
}

// Text that looks like the key of the chunks cannot be mistaken for it.
TEST(RequestRow, TextThatLooksLikeChunks) {
  RequestRow row = testing::synthetic_row({.chunks = 2});
  row.lane = R"(a,"chunks":[[1]])";
  row.request_body = R"({"b":1,"chunks":[]})";
  row.answer.content = R"(,"chunks":[],"row_sha":"0000000000000000"})";
  row.expect = Json{{"a", 1}, {"chunks", Json::array()}};
  const auto back = parse_row(to_line(row));
  ASSERT_TRUE(back) << back.error().detail;
  EXPECT_EQ(back->lane, row.lane);
  EXPECT_EQ(back->request_body, row.request_body);
  EXPECT_EQ(back->answer.content, row.answer.content);
  EXPECT_EQ(back->expect, row.expect);
  EXPECT_EQ(back->chunks.size(), 2u);
}

TEST(RequestRow, ForgedLinesWithARightSealAreStillChecked) {
  const char* const base =
      R"({"seq":0,"purpose":"lane","lane":"x","stamps":{"intended":0},"chunks":[],"outcome":"ok")";
  ASSERT_TRUE(parse_row(sealed(base)));
  const struct {
    const char* what;
    std::string body;
  } cases[] = {
      {"unknown member", std::string(base) + R"(,"extra":1)"},
      {"unknown stamp",
       R"({"seq":0,"purpose":"lane","stamps":{"later":1},"chunks":[],"outcome":"ok")"},
      {"unknown outcome", R"({"seq":0,"purpose":"lane","stamps":{},"chunks":[],"outcome":"fine")"},
      {"unknown purpose", R"({"seq":0,"purpose":"?","stamps":{},"chunks":[],"outcome":"ok")"},
      {"unknown api", std::string(base) + R"(,"api":"soap")"},
      {"text for a number", std::string(base) + R"(,"status":"200")"},
      {"number out of range", std::string(base) + R"(,"status":99999999999)"},
      {"stamp out of range",
       R"({"seq":0,"purpose":"lane","stamps":{"sent":9223372036854775807},"chunks":[],"outcome":"ok")"},
      {"chunk with three parts", chunks(R"([[1,"c",2]])")},
      {"chunk with five parts", chunks(R"([[1,"c",2,null,3]])")},
      {"chunk of unknown kind", chunks(R"([[1,"x",2,null]])")},
      {"chunk with too many bytes", chunks(R"([[1,"c",4294967296,null]])")},
      {"expect that is no object", std::string(base) + R"(,"expect":3)"},
      {"expect with a key twice", std::string(base) + R"(,"expect":{"a":1,"a":2})"},
      {"unknown usage", std::string(base) + R"(,"answer":{"usage":{"sum":1}})"},
      {"unknown timing", std::string(base) + R"(,"answer":{"timings":{"t":1}})"},
      {"unknown tool member", std::string(base) + R"(,"answer":{"tool_calls":[{"x":""}]})"},
      {"unknown answer member", std::string(base) + R"(,"answer":{"x":""})"},
      {"unknown error member", std::string(base) + R"(,"answer":{"error":{"x":""}})"},
      {"no chunks", R"({"seq":0,"purpose":"lane","stamps":{},"outcome":"ok")"},
      {"chunks twice", std::string(base) + R"(,"chunks":[])"},
      {"no stamps", R"({"seq":0,"purpose":"lane","chunks":[],"outcome":"ok")"},
      {"an array", R"([1)"},
      {"bytes after the object",
       R"({"seq":0,"purpose":"lane","stamps":{},"chunks":[],"outcome":"ok"} )"},
      {"nothing", ""},
  };
  for (const auto& one : cases) EXPECT_FALSE(parse_row(sealed(one.body))) << one.what;
}

TEST(RequestRow, NamesReadBack) {
  for (int i = 0; i <= static_cast<int>(Purpose::kProbe); ++i)
    EXPECT_EQ(purpose_from_name(name(static_cast<Purpose>(i))), static_cast<Purpose>(i));
  for (int i = 0; i <= static_cast<int>(Outcome::kCancelled); ++i)
    EXPECT_EQ(outcome_from_name(name(static_cast<Outcome>(i))), static_cast<Outcome>(i));
  EXPECT_FALSE(purpose_from_name(""));
  EXPECT_FALSE(outcome_from_name("OK"));
}

}  // namespace
}  // namespace anvil::evidence
