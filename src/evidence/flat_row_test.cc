#include "evidence/flat_row.h"

#include <gtest/gtest.h>

namespace anvil::evidence {
namespace {

// Sent at 10 s, 50 ms after it should have been; a role at 5 ms, five chunks of four tokens, done
// 5 ms after the last.
RequestRow five_chunks() {
  constexpr Nanos kSent = 10 * kSecond;
  RequestRow row;
  row.lane = "c1";
  row.item = "request-0";
  row.stamps.intended = kSent - 50 * kMillisecond;
  row.stamps.sent = kSent;
  row.stamps.first_event = kSent + 5 * kMillisecond;
  row.stamps.first_output = row.stamps.first_visible = kSent + 100 * kMillisecond;
  row.stamps.last_output = kSent + 260 * kMillisecond;
  row.stamps.done = kSent + 265 * kMillisecond;
  for (int64_t ms = 100; ms <= 260; ms += 40) row.chunks.push_back({ms * kMillisecond, 'c', 8, 4});
  row.answer.usage.prompt = 12;
  row.answer.usage.completion = 20;
  row.token_source = "usage";
  row.status = 200;
  return row;
}

TEST(FlatRow, DerivesWhatARowSays) {
  const Json flat = flat_row(five_chunks());
  EXPECT_EQ(flat["ttfe_ms"], 5.0);
  EXPECT_EQ(flat["ttfo_ms"], 100.0);
  EXPECT_EQ(flat["e2e_ms"], 260.0);
  EXPECT_EQ(flat["service_ms"], 265.0);
  EXPECT_EQ(flat["schedule_ms"], 315.0);
  EXPECT_EQ(flat["send_delay_ms"], 50.0);
  EXPECT_EQ(flat["chunk_gaps_ms"], Json::parse("[40.0,40.0,40.0,40.0]"));
  EXPECT_DOUBLE_EQ(flat["tpot_ms"], 10.0);
  EXPECT_EQ(flat["output_tokens"], 20);
  EXPECT_TRUE(flat["cached_tokens"].is_null());
  EXPECT_TRUE(flat["error_class"].is_null());
  EXPECT_EQ(flat["flags"], Json::array());
}

TEST(FlatRow, UnknownIsNullAndFlagged) {
  RequestRow row = five_chunks();
  row.answer.usage = {};
  row.token_source = "none";
  for (auto& chunk : row.chunks) chunk.tokens.reset();
  const Json flat = flat_row(row);
  EXPECT_TRUE(flat["output_tokens"].is_null());
  EXPECT_TRUE(flat["tpot_ms"].is_null());
  EXPECT_EQ(flat["flags"], Json::array({"no-usage"}));

  RequestRow assumed = five_chunks();
  for (auto& chunk : assumed.chunks) chunk.tokens.reset();
  assumed.cache_state = "cold";
  assumed.answer.usage.cached = 8;
  EXPECT_EQ(flat_row(assumed)["flags"], Json::array({"even-chunks-assumed", "cold-but-cached"}));
}

TEST(FlatRow, AFailureKeepsItsClassAndWhatItHad) {
  RequestRow row = five_chunks();
  row.outcome = Outcome::kTruncated;
  row.error_kind = "reset";
  row.stamps.done.reset();
  const Json flat = flat_row(row);
  EXPECT_EQ(flat["outcome"], name(Outcome::kTruncated));
  EXPECT_EQ(flat["error_class"], "reset");
  EXPECT_TRUE(flat["done_ms"].is_null());
  EXPECT_EQ(flat["ttfo_ms"], 100.0);
}

TEST(FlatRow, CsvHasOneFieldPerColumnAndQuotesWhatNeedsIt) {
  RequestRow row = five_chunks();
  row.item = "a \"b\", c";
  const std::string header = csv_header(), line = csv_line(row);
  EXPECT_NE(line.find("\"a \"\"b\"\", c\""), std::string::npos);
  EXPECT_NE(line.find(",40 40 40 40\n"), std::string::npos);
  const auto commas = [](const std::string& text) {
    return std::count(text.begin(), text.end(), ',');
  };
  EXPECT_EQ(commas(line), commas(header) + 1);  // the one inside the quotes
}

}  // namespace
}  // namespace anvil::evidence
