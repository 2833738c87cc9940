#include "evidence/steady_window.h"

#include <gtest/gtest.h>

namespace anvil::evidence {
namespace {

constexpr Nanos kBase = 1'000 * kSecond;

// A request sent at `sent` seconds whose chunks of one token each come at the given seconds.
RequestRow row_of(double sent, const std::vector<double>& chunks) {
  const auto ns = [](double s) { return kBase + static_cast<Nanos>(s * 1e9); };
  RequestRow row;
  row.stamps.intended = ns(sent);
  row.stamps.sent = ns(sent);
  for (const double at : chunks) {
    row.chunks.push_back({ns(at) - ns(sent), 'c', 4, 1});
    if (!row.stamps.first_output) row.stamps.first_output = ns(at);
    row.stamps.last_output = ns(at);
  }
  row.stamps.done = row.stamps.last_output;
  row.token_source = "usage";
  row.answer.usage.completion = static_cast<int64_t>(chunks.size());
  return row;
}

Json window_of(const std::vector<RequestRow>& rows, bool open_loop = false) {
  SteadyWindow window(open_loop);
  for (const auto& row : rows) window.add(row, measure(row), row.outcome == Outcome::kOk);
  return window.finish();
}

TEST(SteadyWindow, LeavesOutFillingAndDraining) {
  // Two at a time: 0-4, 1-3, then 3-6 and 4-9; the last is sent at 4, the next end is at 6.
  const Json window =
      window_of({row_of(0, {2, 4}), row_of(1, {2, 3}), row_of(3, {4.5, 6}), row_of(4, {5, 9})});
  EXPECT_EQ(window["from_ns"], kBase + 1 * kSecond);
  EXPECT_EQ(window["to_ns"], kBase + 6 * kSecond);
  EXPECT_EQ(window["finished"], 3);  // the one that ends at 9 is outside
  EXPECT_EQ(window["output_tokens"], 7.0);
  EXPECT_DOUBLE_EQ(window["output_tok_s"], 7.0 / 5);
}

TEST(SteadyWindow, CreditsTokensOfARequestThatCrossesTheBorder) {
  const Json window = window_of({row_of(0, {1, 2, 3}), row_of(2.5, {2.6, 2.7, 8})});
  // Both under way from 2.5; the first end after that is at 3.
  EXPECT_EQ(window["from_ns"], kBase + static_cast<Nanos>(2.5e9));
  EXPECT_EQ(window["to_ns"], kBase + 3 * kSecond);
  EXPECT_EQ(window["output_tokens"], 3.0);  // 3 of the first, 2.6 and 2.7 of the second
}

TEST(SteadyWindow, OneAtATimeIsTheWholeLane) {
  const Json window = window_of({row_of(0, {1, 2}), row_of(2, {3, 4})});
  EXPECT_EQ(window["from_ns"], kBase);
  EXPECT_EQ(window["to_ns"], kBase + 4 * kSecond);
}

TEST(SteadyWindow, OpenLoopRunsFromTheFirstToTheLastPlannedMoment) {
  const Json window = window_of({row_of(0, {1}), row_of(1, {2}), row_of(2, {9})}, true);
  EXPECT_EQ(window["to_ns"], kBase + 2 * kSecond);
  EXPECT_EQ(window["finished"], 2);
}

TEST(SteadyWindow, FailedRequestsHoldTheirPlaceAndDeliverNothing) {
  RequestRow failed = row_of(1, {2, 3});
  failed.outcome = Outcome::kTruncated;
  const Json window = window_of({row_of(0, {2, 4}), failed});
  EXPECT_EQ(window["from_ns"], kBase + 1 * kSecond);
  EXPECT_EQ(window["to_ns"], kBase + 3 * kSecond);
  EXPECT_EQ(window["output_tokens"], 1.0);
}

TEST(SteadyWindow, AnUnknownCountMakesTheSumUnknown) {
  RequestRow silent = row_of(0, {1, 2});
  silent.answer.usage.completion.reset();
  silent.token_source = "none";
  const Json window = window_of({silent, row_of(0.5, {1, 2})});
  EXPECT_TRUE(window["output_tok_s"].is_null());
}

TEST(SteadyWindow, SaysHowTokensWereCredited) {
  RequestRow spread = row_of(0, {1, 2, 3});
  for (auto& chunk : spread.chunks) chunk.tokens.reset();
  spread.answer.usage.completion = 9;
  const Json window = window_of({spread, row_of(0, {1, 3})});
  EXPECT_EQ(window["crediting"], "mixed");
  EXPECT_DOUBLE_EQ(window["output_tokens"].get<double>(), 11.0);
}

TEST(SteadyWindow, NothingSentIsNoWindow) {
  EXPECT_TRUE(window_of({}).is_null());
  EXPECT_TRUE(window_of({RequestRow{}}).is_null());
}

}  // namespace
}  // namespace anvil::evidence
