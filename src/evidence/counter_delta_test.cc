#include "evidence/counter_delta.h"

#include <gtest/gtest.h>

namespace anvil::evidence {
namespace {

TEST(CounterDelta, AcceptanceIsOfTheWindowAndNotOfTheTotals) {
  const Json before{{"prompt_tokens", 1000},  {"output_tokens", 50},
                    {"drafts", 40},           {"draft_tokens", 200},
                    {"accepted_tokens", 190}, {"accepted_per_position", {40, 39, 38, 37, 36}}};
  const Json after{{"prompt_tokens", 1600},  {"output_tokens", 450},
                   {"drafts", 140},          {"draft_tokens", 700},
                   {"accepted_tokens", 465}, {"accepted_per_position", {130, 109, 88, 77, 61}}};
  const Json delta = counter_delta(before, after);
  EXPECT_EQ(delta["prompt_tokens"], 600.0);
  EXPECT_EQ(delta["output_tokens"], 400.0);
  EXPECT_EQ(delta["reset"], false);
  EXPECT_DOUBLE_EQ(delta["acceptance"], 0.55);
  EXPECT_DOUBLE_EQ(delta["mean_acceptance_length"], 3.75);
  ASSERT_EQ(delta["acceptance_by_position"].size(), 5U);
  EXPECT_DOUBLE_EQ(delta["acceptance_by_position"][0], 0.9);
  EXPECT_DOUBLE_EQ(delta["acceptance_by_position"][4], 0.25);
  EXPECT_TRUE(delta["preemptions"].is_null());
}

TEST(CounterDelta, AnEngineThatRestartedHasNoDifferences) {
  const Json delta = counter_delta({{"prompt_tokens", 900}, {"output_tokens", 10}},
                                   {{"prompt_tokens", 100}, {"output_tokens", 20}});
  EXPECT_EQ(delta["reset"], true);
  EXPECT_TRUE(delta["output_tokens"].is_null());
  EXPECT_TRUE(delta["acceptance"].is_null());
}

TEST(CounterDelta, APositionThatAppearsLaterStartsAtZero) {
  const Json delta = counter_delta({{"drafts", 0}, {"accepted_per_position", Json::array()}},
                                   {{"drafts", 10}, {"accepted_per_position", {8, 4}}});
  EXPECT_DOUBLE_EQ(delta["acceptance_by_position"][1], 0.4);
}

TEST(CounterDelta, NothingFromAMissingReadingOrNoDrafts) {
  EXPECT_TRUE(counter_delta(nullptr, {{"drafts", 1}}).is_null());
  EXPECT_TRUE(counter_delta({{"drafts", 1}}, nullptr).is_null());
  const Json none = counter_delta({{"drafts", 5}, {"draft_tokens", 9}, {"accepted_tokens", 3}},
                                  {{"drafts", 5}, {"draft_tokens", 9}, {"accepted_tokens", 3}});
  EXPECT_TRUE(none["acceptance"].is_null());
  EXPECT_TRUE(none["mean_acceptance_length"].is_null());
}

}  // namespace
}  // namespace anvil::evidence
