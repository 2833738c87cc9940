// One stream each, over real sockets, with the reading that is right. Values that depend on time
// are derived from the times of the schedule; the client's own stamps are held against the moments
// at which the engine really wrote.
#include "measure/truth_testing.h"
#include "scripted/testing/certificate.h"
#include "scripted/tokens.h"

namespace anvil::measure {
namespace {

using evidence::Outcome;
using evidence::RowMetrics;

constexpr Nanos kMs = kMillisecond;

std::string body(const std::string& options, const std::string& more = {}) {
  return R"({"model":"scripted","stream":true,"messages":[{"role":"user","content":"go"}],)"
         R"("stream_options":{)" +
         options + "}" + more + "}";
}
const std::string kUsage = "\"include_usage\":true";
const std::string kCounts = kUsage + ",\"continuous_usage_stats\":true";

// The shipped schedule, read with usage at the end unless said otherwise.
Seen play(const std::string& name, const std::string& options = kUsage) {
  Seen seen = exchange(shipped_schedule(name), body(options));
  EXPECT_EQ(seen.row.outcome, Outcome::kOk) << seen.row.error_detail;
  EXPECT_EQ(seen.sent.ending, scripted::Ending::kDone);
  expect_stamps_behind_writes(seen);
  return seen;
}

TEST(Truth, RoleOnlyDeltaIsNoOutput) {
  for (const char* name : {"role-only-first", "role-null-first"}) {
    const Seen seen = play(name);
    const RowMetrics metrics = evidence::measure(on_time(seen));
    EXPECT_EQ(metrics.ttfe, 5 * kMs) << name;
    EXPECT_EQ(metrics.ttfo, 100 * kMs) << name;
    EXPECT_EQ(metrics.ttfv, 100 * kMs) << name;
    EXPECT_EQ(seen.row.chunks.size(), 8u) << name;
    EXPECT_LT(*seen.row.stamps.first_event, *seen.row.stamps.first_output) << name;
  }
}

TEST(Truth, ReasoningIsOutputButNotVisible) {
  const Seen seen = play("reasoning-then-content");
  const RowMetrics metrics = evidence::measure(on_time(seen));
  EXPECT_EQ(metrics.ttfo, 50 * kMs);
  EXPECT_EQ(metrics.ttfv, 400 * kMs);
  EXPECT_EQ(metrics.generation, 380 * kMs);
  EXPECT_EQ(metrics.completion_tokens, 12);
  EXPECT_EQ(metrics.reasoning_tokens, 8);
  EXPECT_EQ(kinds(seen.row), "rrrrrrrrcccc");
}

TEST(Truth, SdOne) {
  const Seen seen = play("sd-1", kCounts);
  const evidence::RequestRow row = on_time(seen);
  const RowMetrics metrics = evidence::measure(row);
  EXPECT_EQ(metrics.ttfe, 5 * kMs);
  EXPECT_EQ(metrics.ttfo, 100 * kMs);
  EXPECT_EQ(metrics.ttfv, 100 * kMs);
  EXPECT_EQ(metrics.e2e, 260 * kMs);
  EXPECT_EQ(metrics.done, 265 * kMs);
  EXPECT_EQ(row.stamps.usage, *row.stamps.sent + 264 * kMs);
  EXPECT_EQ(gaps_ms(row), (std::vector<double>{40, 40, 40, 40}));
  EXPECT_TRUE(metrics.per_chunk);
  for (const auto& chunk : row.chunks) EXPECT_EQ(chunk.tokens, 4);
  EXPECT_DOUBLE_EQ(metrics.tpot_ms.value(), 10.0);
  EXPECT_DOUBLE_EQ(metrics.decode_tok_s.value(), 100.0);
  EXPECT_EQ(metrics.completion_tokens, 20);
}

// Without counts in the events every event is taken to carry the same, and the row says so.
TEST(Truth, SdOneWithoutCountsNamesItsAssumption) {
  const RowMetrics metrics = evidence::measure(on_time(play("sd-1")));
  EXPECT_FALSE(metrics.per_chunk);
  EXPECT_EQ(metrics.tokens_after_first, 16);
  EXPECT_DOUBLE_EQ(metrics.tpot_ms.value(), 10.0);
}

// Where that is wrong, so is the speed: counts in the events are worth asking for.
TEST(Truth, UnevenChunksWithoutCountsAreMisread) {
  scripted::Schedule schedule = shipped_schedule("uneven-chunks");
  schedule.streams[0].usage = scripted::UsageMode::kFinal;
  const RowMetrics metrics =
      evidence::measure(on_time(exchange(std::move(schedule), body(kUsage))));
  EXPECT_FALSE(metrics.per_chunk);
  EXPECT_DOUBLE_EQ(metrics.tpot_ms.value(), 120.0 / (20.0 * 12 / 13));
}

TEST(Truth, TokensOfTheFirstChunkAreNotTimed) {
  const Seen seen = play("uneven-chunks", kCounts);
  const RowMetrics metrics = evidence::measure(on_time(seen));
  EXPECT_EQ(seen.row.chunks.front().tokens, 8);
  EXPECT_EQ(metrics.tokens_after_first, 12);
  EXPECT_DOUBLE_EQ(metrics.tpot_ms.value(), 10.0);
}

TEST(Truth, OneChunkHasNoSpeed) {
  const Seen seen = play("one-chunk");
  const RowMetrics metrics = evidence::measure(on_time(seen));
  EXPECT_EQ(metrics.ttfo, 300 * kMs);
  EXPECT_EQ(metrics.e2e, 300 * kMs);
  EXPECT_EQ(metrics.completion_tokens, 36);
  EXPECT_FALSE(metrics.tpot_ms);
  EXPECT_FALSE(metrics.decode_tok_s);
  EXPECT_TRUE(gaps_ms(seen.row).empty());
  EXPECT_FALSE(evidence::measure(seen.row).tpot_ms);
}

TEST(Truth, TokensAreTheEnginesCount) {
  // A tokenizer that puts a BOS before every text does not change how many tokens were generated.
  EXPECT_EQ(evidence::measure(play("bos-tokenizer").row).completion_tokens, 16);

  const Seen spaces = play("spaces");
  EXPECT_EQ(evidence::measure(spaces.row).completion_tokens, 100);
  EXPECT_EQ(spaces.row.token_source, "usage");
  EXPECT_EQ(spaces.row.answer.content, std::string(100, ' '));
  EXPECT_NE(scripted::tokenize(spaces.row.answer.content).size(), 100u);
}

TEST(Truth, WithoutUsageNothingIsInvented) {
  const Seen seen = exchange(shipped_schedule("no-usage"), body(kUsage, ",\"max_tokens\":64"));
  EXPECT_EQ(seen.row.outcome, Outcome::kOk);
  EXPECT_EQ(seen.row.token_source, "none");
  const RowMetrics metrics = evidence::measure(on_time(seen));
  EXPECT_FALSE(metrics.completion_tokens);
  EXPECT_FALSE(metrics.tpot_ms);
  EXPECT_EQ(metrics.ttfo, 20 * kMs);
  EXPECT_EQ(seen.row.chunks.size(), 12u);
}

TEST(Truth, EmptyTextWithUsageIsNoOutput) {
  const Seen seen = exchange(shipped_schedule("stops-early"),
                             body(kUsage, ",\"max_tokens\":64,\"ignore_eos\":true"));
  const RowMetrics metrics = evidence::measure(on_time(seen));
  EXPECT_EQ(metrics.completion_tokens, 7);
  EXPECT_EQ(metrics.tokens_after_first, 6);
  EXPECT_DOUBLE_EQ(metrics.tpot_ms.value(), 10.0);
  EXPECT_EQ(metrics.e2e, 110 * kMs);
  EXPECT_EQ(seen.row.chunks.size(), 7u);
  EXPECT_EQ(seen.row.answer.finish, "stop");
}

TEST(Truth, EventsOfOneSegmentShareTheirStamp) {
  const Seen seen = play("three-in-a-segment");
  ASSERT_EQ(seen.row.chunks.size(), 9u);
  for (size_t i = 0; i < 9; i += 3) {
    EXPECT_EQ(seen.row.chunks[i].since_sent, seen.row.chunks[i + 1].since_sent);
    EXPECT_EQ(seen.row.chunks[i].since_sent, seen.row.chunks[i + 2].since_sent);
  }
}

TEST(Truth, BytesMayArriveInAnyPieces) {
  const Seen whole = play("pings");
  scripted::Schedule cut = shipped_schedule("every-byte");
  const Seen pieces = exchange(cut, body(kUsage));
  EXPECT_EQ(pieces.row.outcome, Outcome::kOk) << pieces.row.error_detail;
  expect_stamps_behind_writes(pieces);
  EXPECT_EQ(pieces.row.answer.content, whole.row.answer.content);
  EXPECT_EQ(pieces.row.answer.usage.completion, 4);

  // Blanks, quotes and characters of several bytes, cut at every offset.
  cut.streams[0].text = "a  b \"c\\d\" \xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82 \n\t e";
  const Seen text = exchange(cut, body(kUsage));
  EXPECT_EQ(text.row.answer.content, *cut.streams[0].text);
}

TEST(Truth, CommentsAreNoEvents) {
  const Seen seen = play("pings");
  const RowMetrics metrics = evidence::measure(on_time(seen));
  EXPECT_EQ(metrics.ttfe, 200 * kMs);
  EXPECT_EQ(metrics.ttfo, 200 * kMs);
  EXPECT_EQ(
      std::count_if(seen.sent.events.begin(), seen.sent.events.end(),
                    [](const auto& event) { return event.kind == scripted::StepKind::kPing; }),
      3);
  EXPECT_GE(*seen.row.stamps.first_event, outputs(seen.sent)[0].write_begin - kClockError);
}

TEST(Truth, LateUsageDoesNotStretchTheAnswer) {
  const Seen seen = play("late-usage");
  const RowMetrics metrics = evidence::measure(on_time(seen));
  EXPECT_EQ(metrics.e2e, 120 * kMs);
  EXPECT_EQ(*metrics.done - *metrics.e2e, 200 * kMs);
  EXPECT_DOUBLE_EQ(metrics.tpot_ms.value(), 10.0);
  // Last output and end come from two writes that are 200 ms apart on the server's clock.
  EXPECT_LT(*seen.row.stamps.last_output, seen.sent.events.back().write_begin);
}

TEST(Truth, FailuresHaveTheirClass) {
  const Seen error = exchange(shipped_schedule("error-in-stream"), body(kUsage));
  EXPECT_EQ(error.row.status, 200);
  EXPECT_EQ(error.row.outcome, Outcome::kErrorInStream);
  EXPECT_EQ(error.row.error_kind, "upstream_error");
  EXPECT_NE(error.row.error_detail.find("out of memory"), std::string::npos);

  const Seen reset = exchange(shipped_schedule("reset-after-10"), body(kUsage));
  EXPECT_EQ(reset.row.outcome, Outcome::kTruncated);
  EXPECT_EQ(reset.row.error_kind, "reset");
  EXPECT_EQ(reset.row.chunks.size(), 10u);
  expect_stamps_behind_writes(reset);
  EXPECT_FALSE(reset.row.stamps.done);
  EXPECT_FALSE(evidence::measure(reset.row).completion_tokens);

  const Seen busy = exchange(shipped_schedule("busy-then-fine"), body(kUsage));
  EXPECT_EQ(busy.row.outcome, Outcome::kHttpError);
  EXPECT_EQ(busy.row.status, 429);
  EXPECT_FALSE(busy.row.stamps.first_output);
}

TEST(Truth, BrokenEndsAreTold) {
  using scripted::FaultKind;
  const auto with = [](FaultKind kind, int64_t after, Limits limits = {}) {
    scripted::Schedule schedule = shipped_schedule("sd-1");
    schedule.streams[0].fault.kind = kind;
    schedule.streams[0].fault.after_events = after;
    return exchange(std::move(schedule), body(kUsage), limits).row;
  };
  EXPECT_EQ(with(FaultKind::kClose, 2).outcome, Outcome::kTruncated);
  const auto end = with(FaultKind::kEnd, 99);
  EXPECT_EQ(end.outcome, Outcome::kTruncated);
  EXPECT_NE(end.error_detail.find("terminal marker"), std::string::npos);
  EXPECT_EQ(with(FaultKind::kGarbage, 1).outcome, Outcome::kProtocolError);
  Limits limits;
  limits.idle = 50 * kMs;
  const auto stalled = with(FaultKind::kStall, 0, limits);
  EXPECT_EQ(stalled.outcome, Outcome::kTimeout);
  EXPECT_FALSE(stalled.stamps.first_output);
}

TEST(Truth, TheSameThroughTls) {
  const scripted::TestCertificate certificate;
  scripted::Options options;
  options.tls_certificate = certificate.certificate_path();
  options.tls_key = certificate.key_path();
  net::TlsOptions trust;
  trust.ca_file = certificate.certificate_path();
  for (const int64_t pieces : {0, 1}) {
    scripted::Schedule schedule = shipped_schedule("sd-1");
    schedule.streams[0].split_every = pieces;
    const Seen seen = exchange(std::move(schedule), body(kCounts), {}, options, trust);
    ASSERT_EQ(seen.row.outcome, Outcome::kOk) << seen.row.error_detail;
    expect_stamps_behind_writes(seen);
    const RowMetrics metrics = evidence::measure(on_time(seen));
    EXPECT_EQ(metrics.ttfe, 5 * kMs);
    EXPECT_EQ(metrics.ttfo, 100 * kMs);
    EXPECT_DOUBLE_EQ(metrics.tpot_ms.value(), 10.0);
    EXPECT_EQ(metrics.completion_tokens, 20);
  }
  // Nobody vouches for the certificate: nothing is sent.
  auto server = scripted::Server::start(shipped_schedule("sd-1"), options);
  ASSERT_TRUE(server) << base::to_string(server.error());
  Endpoint endpoint;
  endpoint.base_url = (*server)->base_url();
  Attempt attempt;
  attempt.body = body(kUsage);
  const base::Cancel cancel;
  const auto refused = Client(endpoint, {}).run_one(std::move(attempt), cancel);
  EXPECT_EQ(refused.outcome, Outcome::kConnectFailed);
  EXPECT_TRUE((*server)->ledger().entries.empty());
}

// The engine's events are due every 2.5 ms; the buffer in between holds 16 KiB of them back.
TEST(Truth, BufferedPathArrivesInBursts) {
  scripted::Schedule schedule = shipped_schedule("buffered-path");
  schedule.streams[0].first_at /= 100;
  schedule.streams[0].gap /= 100;
  const Seen seen = exchange(std::move(schedule), body(kUsage));
  EXPECT_EQ(seen.row.outcome, Outcome::kOk) << seen.row.error_detail;
  expect_stamps_behind_writes(seen);
  const auto sent = outputs(seen.sent);
  EXPECT_EQ(sent.front().due - seen.sent.start, 5 * kMs);
  size_t burst = 0;
  for (; burst < sent.size() && sent[burst].write_begin == sent.front().write_begin;) ++burst;
  EXPECT_GE(burst, 64u);
  EXPECT_LE(burst, 66u);
  // The first event left when the one that filled the buffer was due, and not before.
  EXPECT_GE(sent.front().write_begin, sent[burst].due);
}

TEST(Truth, ServerCountsWhatIsInFlight) {
  scripted::Schedule schedule;
  schedule.name = "in-flight";
  schedule.streams.emplace_back().name = "slow";
  schedule.streams[0].content_tokens = 2;
  schedule.streams[0].gap = 1500 * kMs;  // nobody ends before everybody has begun
  auto server = scripted::Server::start(std::move(schedule));
  ASSERT_TRUE(server) << base::to_string(server.error());
  std::vector<Attempt> attempts(128);
  for (auto& attempt : attempts) attempt.body = body(kUsage);
  const base::Cancel cancel;
  Endpoint endpoint;
  endpoint.base_url = (*server)->base_url();
  const auto rows = Client(endpoint, {}).run(std::move(attempts), 128, cancel);
  for (const auto& row : rows) EXPECT_EQ(row.outcome, Outcome::kOk) << row.error_detail;
  EXPECT_EQ((*server)->ledger().in_flight_max, 128);
}

}  // namespace
}  // namespace anvil::measure
