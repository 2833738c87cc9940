#include "evidence/lane_load.h"

#include <gtest/gtest.h>

namespace anvil::evidence {
namespace {

constexpr Nanos kMs = kMillisecond;
constexpr Nanos kStart = 1'000 * kSecond;

// Planned at `at` ms, sent `late` ms later, first output 10 ms after that, four events `gap` apart.
RequestRow request(int64_t at, int64_t late = 0, Nanos gap = 10 * kMs) {
  RequestRow row;
  row.stamps.intended = kStart + at * kMs;
  row.stamps.sent = row.stamps.intended + late * kMs;
  for (int i = 0; i < 4; ++i) row.chunks.push_back({10 * kMs + i * gap, 'c', 4, 1});
  row.stamps.first_output = *row.stamps.sent + row.chunks.front().since_sent;
  row.stamps.last_output = *row.stamps.sent + row.chunks.back().since_sent;
  row.stamps.done = *row.stamps.last_output + 1 * kMs;
  row.token_source = "usage";
  row.answer.usage.completion = 4;
  return row;
}

LaneLoad load_of(const std::vector<RequestRow>& rows, bool open_loop) {
  LaneLoad load(open_loop);
  for (const auto& row : rows) load.add(row, measure(row), row.outcome == Outcome::kOk);
  return load;
}

// measure::LoadReport of a client that kept up.
Json healthy() {
  return {{"began_ns", kStart},
          {"ended_ns", kStart + kSecond},
          {"threads", 1},
          {"cpu_ns", 50 * kMs},
          {"limit_hits", 0},
          {"retransmits", 0},
          {"stamp_source", {{"kernel", 4}, {"user", 0}}},
          {"in_flight", {{"target", 2}, {"max", 2}, {"mean", 1.8}}},
          {"loop_lag_us", {{"p50", 3.0}, {"p99", 60.0}, {"max", 900.0}}},
          {"lateness_us", {{"p50", 20.0}, {"p99", 100.0}, {"max", 150.0}}}};
}
Json with(const char* pointer, const Json& value) {
  Json report = healthy();
  report[Json::json_pointer(pointer)] = value;
  return {{"client", report}};
}
std::string all(const Json& texts) {
  std::string out;
  for (const Json& text : texts) out += text.get<std::string>() + "\n";
  return out;
}

// One stall of 100 ms before sending, service 3 ms.
TEST(LaneLoad, AStallOfOursIsInScheduleLatencyAndNotInServiceLatency) {
  std::vector<RequestRow> rows;
  for (int i = 0; i < 10; ++i) rows.push_back(request(i * 10, i == 5 ? 100 : 0, 0));
  const LaneLoad load = load_of(rows, true);
  for (const auto nanos : load.service) EXPECT_EQ(nanos, 11 * kMs);
  EXPECT_EQ(*std::max_element(load.schedule.begin(), load.schedule.end()), 111 * kMs);
  EXPECT_EQ(std::count(load.schedule.begin(), load.schedule.end(), 11 * kMs), 9);

  const Json stalled = load.judge_client(with("/lateness_us/max", 100'000.0), nullptr);
  EXPECT_NE(all(stalled["warnings"]).find("left late by 100 ms"), std::string::npos);
}

TEST(LaneLoad, GoodputCountsRequestsThatMeetEveryObjective) {
  std::vector<RequestRow> rows;
  for (int i = 0; i < 100; ++i) rows.push_back(request(i * 10, 0, i < 95 ? 10 * kMs : 40 * kMs));
  rows[0].outcome = Outcome::kTruncated;
  LaneLoad load = load_of(rows, true);
  const Json goodput =
      load.goodput({{"objectives", {{"tpot_ms_p90", 20}, {"ttfo_ms_p50", 500}, {"odd", 3}}}});
  EXPECT_EQ(goodput["met"], 94);
  EXPECT_EQ(goodput["of"], 100);
  ASSERT_EQ(goodput["objectives"].size(), 2U);
  const Json& tpot = goodput["objectives"][0];
  EXPECT_EQ(tpot["metric"], "tpot_ms");
  EXPECT_EQ(tpot["percentile"], 90.0);
  EXPECT_EQ(tpot["met"], 94);
  EXPECT_EQ(tpot["holds"], true);
  EXPECT_EQ(tpot["proven"], false);  // 6 of 100 over a p90 may still be luck
  EXPECT_EQ(goodput["objectives"][1]["proven"], true);
  EXPECT_TRUE(load.goodput(nullptr).is_null());
}

TEST(LaneLoad, AClientThatKeptUpIsValid) {
  const LaneLoad load = load_of({request(0), request(10), request(20)}, false);
  const Json judged = load.judge_client({{"client", healthy()}}, nullptr);
  EXPECT_EQ(judged["valid"], true);
  EXPECT_EQ(judged["invalid_reasons"], Json::array());
  EXPECT_EQ(judged["warnings"], Json::array());
  EXPECT_EQ(judged["stamp_source"], "kernel");
  EXPECT_EQ(judged["path"], "streaming");
  EXPECT_DOUBLE_EQ(judged["busy_share"], 0.05);
}

TEST(LaneLoad, ABottleneckOfOursMakesTheLaneInvalid) {
  const LaneLoad closed = load_of({request(0), request(10), request(20)}, false);
  const Json busy = closed.judge_client(with("/cpu_ns", 950 * kMs), nullptr);
  EXPECT_EQ(busy["valid"], false);
  EXPECT_NE(all(busy["invalid_reasons"]).find("95.0 %"), std::string::npos);
  const Json few = closed.judge_client(with("/in_flight/max", 1), nullptr);
  EXPECT_NE(all(few["invalid_reasons"]).find("1 of 2"), std::string::npos);
  const LaneLoad open = load_of({request(0), request(10), request(20)}, true);
  const Json late = open.judge_client(with("/lateness_us/p99", 5'000.0), nullptr);
  EXPECT_NE(all(late["invalid_reasons"]).find("5.0 ms"), std::string::npos);
  // Late by less than 1 ms, or by a share of the latency that does not matter, is no reason.
  EXPECT_EQ(open.judge_client(with("/lateness_us/p99", 900.0), nullptr)["valid"], true);
}

TEST(LaneLoad, EventsThatArriveTogetherAreABufferedPath) {
  const LaneLoad load = load_of({request(0, 0, 0), request(10, 0, 0), request(20, 0, 0)}, false);
  const Json judged = load.judge_client({{"client", healthy()}}, nullptr);
  EXPECT_EQ(judged["path"], "buffered");
  EXPECT_NE(all(judged["warnings"]).find("buffered path"), std::string::npos);
}

TEST(LaneLoad, RecordsOfAnyShapeAreTaken) {
  const LaneLoad load = load_of({request(0)}, true);
  for (const Json& odd : {Json(nullptr), Json(4), Json{{"client", "x"}},
                          Json{{"client", {{"in_flight", 3}, {"lateness_us", nullptr}}}}}) {
    EXPECT_EQ(load.judge_client(odd, nullptr)["valid"], true);
    EXPECT_EQ(load.describe(odd, odd)["kind"], "closed");
  }
}

}  // namespace
}  // namespace anvil::evidence
