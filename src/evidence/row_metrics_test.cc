#include "evidence/row_metrics.h"

#include <gtest/gtest.h>

#include "evidence/derive_parts.h"
#include "evidence/distribution.h"

namespace anvil::evidence {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSent = 1000 * kMs;

struct Event {
  int64_t at_ms;
  std::optional<int64_t> tokens;
};

// One ok row of a stream whose output events arrive at these times.
RequestRow stream(const std::vector<Event>& events, std::optional<int64_t> completion) {
  RequestRow row;
  row.lane = "lane";
  row.stamps.sent = kSent;
  row.stamps.first_event = kSent + 5 * kMs;
  if (!events.empty()) {
    row.stamps.first_output = row.stamps.first_visible = kSent + events.front().at_ms * kMs;
    row.stamps.last_output = kSent + events.back().at_ms * kMs;
  }
  for (const Event& event : events) row.chunks.push_back({event.at_ms * kMs, 'c', 1, event.tokens});
  row.answer.usage.completion = completion;
  row.token_source = completion ? "usage" : "none";
  return row;
}

Json lane_of(const std::vector<RequestRow>& rows, Json plan = nullptr) {
  DerivationInputs inputs;
  inputs.plan = plan;
  Lanes lanes(inputs);
  for (const RequestRow& row : rows) lanes.add(row);
  return lanes.finish()[0];
}

// A role-only event counts for TTFE and nowhere else; five events of four tokens.
TEST(RowMetrics, FiveChunksOfFourTokens) {
  const RequestRow row = stream({{100, 4}, {140, 4}, {180, 4}, {220, 4}, {260, 4}}, 20);
  const RowMetrics metrics = measure(row);
  EXPECT_EQ(metrics.ttfe, 5 * kMs);
  EXPECT_EQ(metrics.ttfo, 100 * kMs);
  EXPECT_EQ(metrics.generation, 160 * kMs);
  EXPECT_DOUBLE_EQ(*metrics.tpot_ms, 10.0);
  EXPECT_DOUBLE_EQ(*metrics.decode_tok_s, 100.0);
  EXPECT_TRUE(metrics.per_chunk);
  const Json lane = lane_of({row});
  EXPECT_EQ(lane["chunk_gap_ms"]["n"], 4);
  EXPECT_EQ(lane["chunk_gap_ms"]["min"], 40.0);
  EXPECT_EQ(lane["chunk_gap_ms"]["max"], 40.0);
  EXPECT_EQ(lane["tokens_per_chunk"], (Json{{"4", 5}}));
  EXPECT_EQ(lane["tpot_assumption"], "per-chunk counts");
}

// First chunk of 8 tokens at 100 ms, then 12 single tokens every 10 ms: 120 / 12, not 120 / 19.
TEST(RowMetrics, LargeFirstChunk) {
  std::vector<Event> events{{100, 8}};
  for (int i = 1; i <= 12; ++i) events.push_back({100 + 10 * i, 1});
  const RowMetrics metrics = measure(stream(events, 20));
  EXPECT_EQ(metrics.tokens_after_first, 12);
  EXPECT_DOUBLE_EQ(*metrics.tpot_ms, 10.0);
}

// Five chunks of four tokens of which only the sum is known: (20 - 20 / 5) tokens in 160 ms.
TEST(RowMetrics, WithoutPerChunkCountsEveryChunkCarriesTheSame) {
  const RequestRow row = stream({{100, {}}, {140, {}}, {180, {}}, {220, {}}, {260, {}}}, 20);
  EXPECT_DOUBLE_EQ(*measure(row).tokens_after_first, 16);
  EXPECT_DOUBLE_EQ(*measure(row).tpot_ms, 10.0);
  EXPECT_DOUBLE_EQ(*measure(row).decode_tok_s, 100.0);
}

TEST(RowMetrics, WithoutPerChunkCountsTheAssumptionIsRecorded) {
  const RequestRow row = stream({{100, {}}, {110, {}}, {120, {}}}, 3);
  EXPECT_EQ(measure(row).tokens_after_first, 2);
  EXPECT_DOUBLE_EQ(*measure(row).tpot_ms, 10.0);
  EXPECT_EQ(lane_of({row})["tpot_assumption"], "even over the chunks");
  EXPECT_EQ(lane_of({row})["tokens_per_chunk"], (Json{{"unknown", 3}}));
  const RequestRow counted = stream({{100, 1}, {110, 1}}, 2);
  EXPECT_EQ(lane_of({row, counted})["tpot_assumption"], "mixed");
}

// The whole answer in one chunk: TPOT is undefined, not zero, and there are no gaps.
TEST(RowMetrics, WholeAnswerInOneChunk) {
  const RequestRow row = stream({{300, 36}}, 36);
  const RowMetrics metrics = measure(row);
  EXPECT_EQ(metrics.ttfo, 300 * kMs);
  EXPECT_EQ(metrics.e2e, 300 * kMs);
  EXPECT_EQ(metrics.generation, 0);
  EXPECT_FALSE(metrics.tpot_ms);
  EXPECT_FALSE(metrics.decode_tok_s);
  const Json lane = lane_of({row});
  EXPECT_EQ(lane["chunk_gap_ms"]["n"], 0);
  EXPECT_TRUE(lane["chunk_gap_ms"]["min"].is_null());
  EXPECT_EQ(lane["tpot_ms"]["n"], 0);
  EXPECT_TRUE(lane["tpot_assumption"].is_null());
}

// Several events in one segment: gap 0 is a value; but no time passed, so there is no rate.
TEST(RowMetrics, EventsWithTheSameStamp) {
  const RequestRow row = stream({{100, 1}, {100, 1}, {100, 1}}, 3);
  EXPECT_FALSE(measure(row).tpot_ms);
  EXPECT_EQ(lane_of({row})["chunk_gap_ms"]["max"], 0.0);
}

// No usage: tokens are unknown, never the requested length, and the lane says so.
TEST(RowMetrics, NoUsage) {
  const RequestRow row = stream({{100, {}}, {110, {}}}, std::nullopt);
  EXPECT_FALSE(measure(row).completion_tokens);
  EXPECT_FALSE(measure(row).tpot_ms);
  const Json lane = lane_of({row}, Json{{"lanes", {{{"id", "lane"}, {"output_tokens", 64}}}}});
  EXPECT_EQ(lane["token_source"], (Json{{"none", 1}}));
  EXPECT_TRUE(lane["tokens"]["completion"].is_null());
  EXPECT_TRUE(lane["aggregate_output_tok_s"].is_null());
  EXPECT_EQ(lane["ttfo_ms"]["n"], 1);
}

// Each probe of a search is a lane of its own, judged by the objectives of the lane that searches.
TEST(Lanes, ASearchForTheHighestRateIsReplayedFromItsProbes) {
  DerivationInputs inputs;
  inputs.plan = {{"lanes",
                  {{{"id", "knee"},
                    {"load", "poisson"},
                    {"rate", 2.0},
                    {"requests", 40},
                    {"find_knee", true},
                    {"objectives", {{"ttfo_ms_p90", 150}}}}}}};
  inputs.load = {{"lanes",
                  {{{"id", "knee@2#1"}, {"of", "knee"}, {"rate", 2.0}},
                   {{"id", "knee@4#2"}, {"of", "knee"}, {"rate", 4.0}}}}};
  Lanes lanes(inputs);
  for (int i = 0; i < 40; ++i) {
    RequestRow good = stream({{100, 1}, {110, 1}}, 2);
    good.lane = "knee@2#1";
    lanes.add(good);
    RequestRow slow = stream({{200, 1}, {210, 1}}, 2);
    slow.lane = "knee@4#2";
    lanes.add(slow);
  }
  const Json results = lanes.finish();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0]["id"], "knee@2#1");
  EXPECT_EQ(results[0]["load"]["rate_target"], 2.0);
  EXPECT_EQ(results[0]["goodput"]["met"], 40);
  EXPECT_EQ(results[1]["goodput"]["met"], 0);
  const Json knees = lanes.knees(results);
  ASSERT_EQ(knees.size(), 1U);
  EXPECT_EQ(knees[0]["lane"], "knee");
  EXPECT_EQ(knees[0]["rate"], 2.0);
  EXPECT_EQ(knees[0]["breaks_at"], 4.0);
}

// Stopped after 7 of 64 tokens; usage came in an event without text.
TEST(RowMetrics, StoppedEarly) {
  std::vector<Event> events;
  for (int i = 0; i < 7; ++i) events.push_back({100 + 10 * i, {}});
  const RowMetrics metrics = measure(stream(events, 7));
  EXPECT_EQ(metrics.completion_tokens, 7);
  EXPECT_EQ(metrics.tokens_after_first, 6);
  EXPECT_DOUBLE_EQ(*metrics.tpot_ms, 10.0);
}

// An error inside a 200 stream: failed, in the denominator, out of the latencies.
TEST(RowMetrics, ErrorInsideTheStream) {
  RequestRow failed = stream({}, std::nullopt);
  failed.outcome = Outcome::kErrorInStream;
  failed.status = 200;
  const Json lane = lane_of({stream({{100, {}}, {110, {}}}, 2), failed});
  EXPECT_EQ(lane["requests"], (Json{{"total", 2}, {"ok", 1}, {"failed", 1}, {"refused", 0}}));
  EXPECT_EQ(lane["success_rate"], 0.5);
  EXPECT_EQ(lane["ttfe_ms"]["n"], 1);
  EXPECT_EQ(lane["ttfo_ms"]["n"], 1);
  RequestTotals totals;
  totals.add(failed);
  EXPECT_EQ(totals.finish()["by_outcome"], (Json{{"error_in_stream", 1}}));
}

// Reset after 10 of 64 tokens: its stamps stay in the row and out of every statistic.
TEST(RowMetrics, ResetInTheMiddle) {
  std::vector<Event> events;
  for (int i = 0; i < 10; ++i) events.push_back({100 + 10 * i, {}});
  RequestRow row = stream(events, std::nullopt);
  row.outcome = Outcome::kTruncated;
  EXPECT_EQ(measure(row).ttfo, 100 * kMs);
  const Json lane = lane_of({row});
  EXPECT_EQ(lane["ttfo_ms"]["n"], 0);
  EXPECT_EQ(lane["chunk_gap_ms"]["n"], 0);
  EXPECT_EQ(lane["success_rate"], 0.0);
  EXPECT_TRUE(lane["window_s"].is_null());
}

// Usage 200 ms after the last token does not move the last token; the two ends differ by it.
TEST(RowMetrics, TrailingUsage) {
  RequestRow row = stream({{100, {}}, {200, {}}}, 2);
  row.stamps.usage = kSent + 400 * kMs;
  row.stamps.done = kSent + 400 * kMs;
  const RowMetrics metrics = measure(row);
  EXPECT_EQ(metrics.e2e, 200 * kMs);
  EXPECT_EQ(*metrics.done - *metrics.e2e, 200 * kMs);
}

TEST(RowMetrics, ZeroAndBackwardStampsNeverCount) {
  RequestRow row = stream({{100, {}}, {110, {}}}, 2);
  row.stamps.first_event = 0;
  row.stamps.first_visible = kSent - 1;
  row.stamps.intended = 0;
  const RowMetrics metrics = measure(row);
  EXPECT_FALSE(metrics.ttfe);
  EXPECT_FALSE(metrics.ttfv);
  EXPECT_FALSE(metrics.send_delay);
  row.stamps.sent.reset();
  EXPECT_FALSE(measure(row).ttfo);
  EXPECT_FALSE(measure(row).e2e);
}

TEST(RowMetrics, PrefillWithAndWithoutTheCache) {
  RequestRow row = stream({{200, {}}, {210, {}}}, 2);
  row.answer.usage.prompt = 2960;
  row.answer.usage.cached = 2816;
  const RowMetrics metrics = measure(row);
  EXPECT_DOUBLE_EQ(*metrics.effective_prefill_tok_s, 14800.0);
  EXPECT_DOUBLE_EQ(*metrics.computed_prefill_tok_s, 720.0);
  row.answer.usage.cached.reset();
  EXPECT_TRUE(measure(row).effective_prefill_tok_s);
  EXPECT_FALSE(measure(row).computed_prefill_tok_s);
}

TEST(RowMetrics, CountsFromEngineTimings) {
  RequestRow row = stream({{200, {}}, {210, {}}}, std::nullopt);
  row.token_source = "timings";
  row.answer.timings = wire::EngineTimings{12, 500, 2, {}, {}, {}, {}};
  const RowMetrics metrics = measure(row);
  EXPECT_EQ(metrics.completion_tokens, 2);
  EXPECT_EQ(metrics.cached_tokens, 12);
  EXPECT_EQ(metrics.cached_source, "timings");
  EXPECT_EQ(metrics.prompt_tokens, 512);
}

TEST(RowMetrics, CacheStatesThatAreRefused) {
  RowMetrics none, zero, some;
  zero.cached_tokens = 0;
  some.cached_tokens = 7;
  EXPECT_EQ(refuse_cache_state("cold", zero, true), "");
  EXPECT_EQ(refuse_cache_state("cold", some, true), "cached");
  EXPECT_EQ(refuse_cache_state("cold", some, false), "cached");
  EXPECT_EQ(refuse_cache_state("cold", none, true), "unproven");
  EXPECT_EQ(refuse_cache_state("cold", none, false), "");
  EXPECT_EQ(refuse_cache_state("prefix", some, true), "");
  EXPECT_EQ(refuse_cache_state("prefix", zero, true), "not-cached");
  EXPECT_EQ(refuse_cache_state("prefix", none, true), "unproven");
  EXPECT_EQ(refuse_cache_state("", some, true), "");
}

TEST(Lanes, RefusedRowsAreCountedAndLeftOut) {
  RequestRow good = stream({{100, {}}, {110, {}}}, 2);
  good.cache_state = "cold";
  good.answer.usage.cached = 0;
  RequestRow warm = stream({{20, {}}, {30, {}}}, 2);
  warm.cache_state = "cold";
  warm.answer.usage.cached = 300;
  RequestRow silent = stream({{50, {}}, {60, {}}}, 2);
  silent.cache_state = "cold";
  const Json strict = lane_of({good, warm, silent});
  EXPECT_EQ(strict["requests"], (Json{{"total", 3}, {"ok", 1}, {"failed", 0}, {"refused", 2}}));
  EXPECT_EQ(strict["refusals"], (Json{{"cached", 1}, {"unproven", 1}}));
  EXPECT_EQ(strict["ttfo_ms"]["min"], 100.0);
  EXPECT_EQ(strict["success_rate"], 1.0);
  EXPECT_EQ(strict["cache_proof"], "mixed");
  const Json lenient =
      lane_of({good, silent}, Json{{"lanes", {{{"id", "lane"}, {"cache_proof", "none"}}}}});
  EXPECT_EQ(lenient["requests"]["ok"], 2);
}

TEST(Lanes, WindowAndAggregate) {
  RequestRow first = stream({{100, {}}, {1000, {}}}, 40);
  RequestRow second = first;
  second.stamps.sent = kSent + 500 * kMs;
  second.stamps.last_output = kSent + 2000 * kMs;
  const Json lane = lane_of({second, first});
  EXPECT_EQ(lane["window_s"], 2.0);
  EXPECT_EQ(lane["aggregate_output_tok_s"], 40.0);
  EXPECT_EQ(lane["tokens"]["completion"], 80);
}

TEST(Lanes, SpeculationAndMissedLength) {
  RequestRow row = stream({{100, {}}, {110, {}}}, 2);
  row.answer.timings = wire::EngineTimings{};
  row.answer.timings->draft_n = 500;
  row.answer.timings->draft_n_accepted = 275;
  const Json lane = lane_of(
      {row}, Json{{"lanes", {{{"id", "lane"}, {"fixed_output", true}, {"output_tokens", 64}}}}});
  EXPECT_EQ(lane["speculation"], (Json{{"drafted", 500}, {"accepted", 275}, {"acceptance", 0.55}}));
  EXPECT_EQ(lane["fixed_output_missed"], 1);
}

TEST(Lanes, PlannedLanesWithoutRowsAreListed) {
  DerivationInputs inputs;
  inputs.plan = {{"lanes", {{{"id", "b"}}, {{"id", "a"}}, {{"no", "id"}}, 3}}};
  Lanes lanes(inputs);
  RequestRow row = stream({{1, {}}}, 1);
  row.lane = "extra";
  lanes.add(row);
  const Json out = lanes.finish();
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0]["id"], "b");
  EXPECT_EQ(out[1]["id"], "a");
  EXPECT_EQ(out[2]["id"], "extra");
  EXPECT_EQ(out[0]["requests"]["total"], 0);
  EXPECT_TRUE(out[0]["success_rate"].is_null());
}

TEST(Distribution, NearestRankAndFloors) {
  const auto up_to = [](int n) {
    std::vector<double> values;
    for (int i = n; i >= 1; --i) values.push_back(i);
    return distribution(values);
  };
  const Json ten = up_to(10);
  EXPECT_TRUE(ten["p50"].is_null());
  EXPECT_EQ(ten["median_below_floor"], 5.0);
  EXPECT_EQ(ten["mean"], 5.5);
  const Json eleven = up_to(11);
  EXPECT_EQ(eleven["p50"], 6.0);
  EXPECT_TRUE(eleven["median_below_floor"].is_null());
  EXPECT_TRUE(up_to(63)["p90"].is_null());
  EXPECT_EQ(up_to(64)["p90"], 58.0);  // ceil(57.6)
  EXPECT_TRUE(up_to(129)["p95"].is_null());
  EXPECT_EQ(up_to(130)["p95"], 124.0);  // ceil(123.5)
  EXPECT_TRUE(up_to(661)["p99"].is_null());
  const Json many = up_to(662);
  EXPECT_EQ(many["p50"], 331.0);
  EXPECT_EQ(many["p90"], 596.0);
  EXPECT_EQ(many["p95"], 629.0);
  EXPECT_EQ(many["p99"], 656.0);  // ceil(655.38)
  EXPECT_EQ(many["max"], 662.0);
  const Json none = up_to(0);
  EXPECT_EQ(none["n"], 0);
  EXPECT_TRUE(none["mean"].is_null());
  EXPECT_FALSE(median({}));
  EXPECT_EQ(median({3, 1, 2}), 2.0);
}

TEST(Distribution, NanosecondsBecomeMilliseconds) {
  std::vector<int64_t> values{1'500'000, 2'500'000};
  const Json out = distribution_ms(values);
  EXPECT_EQ(out["min"], 1.5);
  EXPECT_EQ(out["mean"], 2.0);
}

}  // namespace
}  // namespace anvil::evidence
