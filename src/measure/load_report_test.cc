#include "measure/load_report.h"

#include <gtest/gtest.h>

namespace anvil::measure {
namespace {

TEST(DelayCounts, QuantilesAreWithinOnePercent) {
  DelayCounts counts;
  for (Nanos value = 1; value <= 100'000; ++value) counts.add(value * 10);
  EXPECT_EQ(counts.count(), 100'000u);
  EXPECT_EQ(counts.max(), 1'000'000);
  for (const double q : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    const double truth = q * 1e6;
    EXPECT_GE(static_cast<double>(counts.quantile(q)), truth) << q;
    EXPECT_LE(static_cast<double>(counts.quantile(q)), truth * 1.01) << q;
  }
  EXPECT_EQ(counts.quantile(1), 1'000'000);
}

TEST(DelayCounts, SmallValuesAreExactAndHugeOnesAreKept) {
  DelayCounts counts;
  EXPECT_EQ(counts.quantile(0.5), 0);
  EXPECT_TRUE(counts.to_json()["p99"].is_null());
  counts.add(-5);
  counts.add(7);
  counts.add(int64_t{1} << 60);
  EXPECT_EQ(counts.quantile(0.3), 0);
  EXPECT_EQ(counts.quantile(0.5), 7);
  EXPECT_EQ(counts.quantile(0.99), int64_t{1} << 60);
}

TEST(DelayCounts, ThreadsAddUp) {
  DelayCounts all, left, right;
  for (Nanos value = 0; value < 5000; ++value) {
    all.add(value * value);
    (value % 3 == 0 ? left : right).add(value * value);
  }
  left.add(right);
  EXPECT_EQ(left.to_json(), all.to_json());
}

TEST(LoadReport, UnknownIsNullAndNamesAreStable) {
  LoadReport report;
  report.connections = Connections::kPool;
  const Json json = report.to_json();
  EXPECT_TRUE(json["cpu_ns_per_event"].is_null());
  EXPECT_TRUE(json["lateness_us"]["p50"].is_null());
  EXPECT_EQ(json["connections"]["policy"], "pool");
  for (const char* member :
       {"began_ns", "ended_ns", "threads", "stamp_source", "events", "reads", "multi_event_reads",
        "late_in_batch", "loop_lag_us", "stamp_delay_us", "receive_queue_max_bytes", "retransmits",
        "in_flight", "limit_hits", "cpu_ns"})
    EXPECT_TRUE(json.contains(member)) << member;
}

}  // namespace
}  // namespace anvil::measure
