#include "measure/calibrate.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace anvil::measure {
namespace {

using scripted::StepKind;

scripted::LedgerEntry entry(const std::string& id, Nanos received, std::vector<Nanos> writes) {
  scripted::LedgerEntry out;
  out.id = id;
  out.arrived = received;
  out.recv_last_byte = received + 40'000;  // read late: not the client's doing
  out.events.push_back({received, received + 1, received + 2, StepKind::kRole, 0, 10});
  for (const Nanos at : writes) out.events.push_back({at, at, at + 5, StepKind::kContent, 1, 20});
  out.events.push_back({0, writes.back() + 9, writes.back() + 10, StepKind::kDone, 0, 5});
  return out;
}

evidence::RequestRow row(const std::string& id, Nanos sent, const std::vector<Nanos>& stamps) {
  evidence::RequestRow out;
  out.answer.id = "chatcmpl-" + id;
  out.stamps.sent = sent;
  for (const Nanos at : stamps) out.chunks.push_back({at - sent, 'c', 4, 1});
  return out;
}

TEST(ClientErrors, AreDifferencesToTheLedger) {
  scripted::Ledger ledger;
  ledger.entries = {entry("scripted-1", 1'000, {5'000, 9'000, 13'000})};
  // Sent 100 ns before the server had it; stamps 30, 70 and 20 ns after the writes.
  const auto errors = client_errors({row("scripted-1", 900, {5'030, 9'070, 13'020})}, ledger);
  EXPECT_EQ(errors.unmatched, 0);
  EXPECT_EQ(errors.stamp, (std::vector<Nanos>{30, 70, 20}));
  EXPECT_EQ(errors.gap, (std::vector<Nanos>{40, -50}));
  EXPECT_EQ(errors.first_output, std::vector<Nanos>{130});
}

TEST(ClientErrors, RowsThatDoNotFitTheLedgerAreCountedAndLeftOut) {
  scripted::Ledger ledger;
  ledger.entries = {entry("scripted-1", 1'000, {5'000, 9'000})};
  evidence::RequestRow unsent = row("scripted-1", 900, {5'030, 9'070});
  unsent.stamps.sent.reset();
  const auto errors = client_errors(
      {row("scripted-1", 900, {5'030}), row("scripted-2", 900, {5'030}), unsent}, ledger);
  EXPECT_EQ(errors.unmatched, 3);
  EXPECT_TRUE(errors.stamp.empty());
}

TEST(Calibrate, FindsTheClientCloseToTheLedger) {
  base::Cancel cancel;
  CalibrationPoint point;
  point.lane = "c3";
  point.concurrency = 3;
  point.events_per_s = 600;
  const auto document = calibrate({point}, cancel, {});
  ASSERT_TRUE(document) << base::to_string(document.error());
  const Json& found = (*document)["points"][0];
  EXPECT_EQ(found["lane"], "c3");
  EXPECT_EQ(found["unmatched"], 0);
  ASSERT_GT(found["stamp_error_ns"].size(), 500U);
  EXPECT_EQ(found["first_output_error_ns"].size(), 24U);
  // No event can be seen before its write began.
  EXPECT_GE(found["stamp_error_ns"][0].get<int64_t>(), 0);
  EXPECT_TRUE(std::is_sorted(found["stamp_error_ns"].begin(), found["stamp_error_ns"].end()));
  EXPECT_TRUE(found["server"].contains("void"));
}

TEST(Calibrate, CanBeStopped) {
  base::Cancel cancel;
  cancel.request();
  const auto document = calibrate({CalibrationPoint{}}, cancel, {});
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().kind, Kind::kCancelled);
}

}  // namespace
}  // namespace anvil::measure
