#include "scripted/ledger.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "base/strings.h"

namespace anvil::scripted {
namespace {

TEST(Lateness, PercentilesAreAtMostASixtyFourthHigh) {
  Lateness lateness;
  EXPECT_EQ(lateness.at(500), 0);
  for (Nanos i = 1; i <= 1000; ++i) lateness.add(i * 1000);
  for (const unsigned q : {1u, 10u, 500u, 900u, 990u, 999u}) {
    const Nanos exact = static_cast<Nanos>(q) * 1000;
    EXPECT_GE(lateness.at(q), exact) << q;
    EXPECT_LE(lateness.at(q), exact + exact / 64) << q;
  }
  EXPECT_EQ(lateness.at(1000), 1'000'000);
  EXPECT_EQ(lateness.max(), 1'000'000);
  Lateness other;
  other.add(-5);  // early is on time
  other.add(std::numeric_limits<Nanos>::max());
  other.merge(lateness);
  EXPECT_EQ(other.count(), 1002);
  EXPECT_EQ(other.at(1), 1007);  // 1000 stands in a bucket of 8
  EXPECT_EQ(other.at(1000), std::numeric_limits<Nanos>::max());
}

TEST(Ledger, IsVoidWhenTheServerWasLate) {
  Ledger ledger;
  EXPECT_FALSE(ledger.is_void());
  ledger.smallest_gap = 10 * kMillisecond;
  for (int i = 0; i < 100; ++i) ledger.lateness.add(900 * kMicrosecond);
  EXPECT_FALSE(ledger.is_void());
  for (int i = 0; i < 2; ++i) ledger.lateness.add(2 * kMillisecond);
  EXPECT_TRUE(ledger.is_void());
}

TEST(Ledger, IsWrittenLineByLine) {
  Schedule schedule;
  schedule.name = "t";
  schedule.streams.emplace_back().name = "a";
  Ledger ledger;
  ledger.requests = 1;
  LedgerEntry entry;
  entry.id = "x";
  entry.stream = 0;
  entry.ending = Ending::kDone;
  entry.events.push_back({1, 2, 3, StepKind::kContent, 4, 5});
  ledger.entries.push_back(entry);
  const std::string path = "/tmp/anvil-ledger-" + std::to_string(getpid()) + ".jsonl";
  ASSERT_TRUE(write_ledger(path, ledger, schedule));
  const auto text = base::read_file(path);
  unlink(path.c_str());
  ASSERT_TRUE(text);
  const auto lines = base::split(base::trim(*text), '\n');
  ASSERT_EQ(lines.size(), 2u);
  const auto line = base::parse_json(lines[0], "line");
  ASSERT_TRUE(line);
  EXPECT_EQ((*line)["stream_name"], "a");
  EXPECT_EQ((*line)["outcome"], "done");
  EXPECT_EQ((*line)["events"][0], (Json{{"due_ns", 1},
                                        {"write_begin_ns", 2},
                                        {"write_end_ns", 3},
                                        {"kind", "content"},
                                        {"tokens", 4},
                                        {"bytes", 5}}));
  EXPECT_EQ((*base::parse_json(lines[1], "line"))["summary"]["requests"], 1);
}

}  // namespace
}  // namespace anvil::scripted
