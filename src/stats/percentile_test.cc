#include "stats/percentile.h"

#include <gtest/gtest.h>

#include "stats/binomial.h"
#include "stats/early_stopping.h"

// Reference values: tests/reference/statistics.py (SciPy 1.17.1).

namespace anvil::stats {
namespace {

TEST(Percentile, NearestRankIsExactWhereBinaryFractionsAreNot) {
  EXPECT_EQ(nearest_rank(20, 950), 19U);
  EXPECT_EQ(nearest_rank(100, 990), 99U);
  EXPECT_EQ(nearest_rank(3, 950), 3U);
  EXPECT_EQ(nearest_rank(3, 500), 2U);
  EXPECT_EQ(nearest_rank(1, 1), 1U);
  EXPECT_EQ(nearest_rank(10'000, 999), 9'990U);
  EXPECT_FALSE(nearest_rank_value({}, 500));
  const std::vector<double> rising{1, 2, 3, 4};
  EXPECT_EQ(nearest_rank_value(rising, 500), 2.0);
  EXPECT_EQ(nearest_rank_value(rising, 990), 4.0);
}

TEST(Percentile, RisingSelectionsAreThoseOfASortedList) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 1'000; ++i) values.push_back(i * 7919 % 1'000);
  RisingPercentiles<int64_t> percentiles(values);
  EXPECT_EQ(percentiles.at(500), 499);
  EXPECT_EQ(percentiles.at(500), 499);
  EXPECT_EQ(percentiles.at(900), 899);
  EXPECT_EQ(percentiles.at(999), 998);
  std::vector<int64_t> one{42};
  EXPECT_EQ(RisingPercentiles<int64_t>(one).at(990), 42);
}

TEST(Percentile, FloorsComeFromTheEarlyStoppingRule) {
  EXPECT_EQ(sample_floor(500), 11U);
  EXPECT_EQ(sample_floor(900), 64U);
  EXPECT_EQ(sample_floor(950), 130U);
  EXPECT_EQ(sample_floor(990), 662U);
  EXPECT_EQ(sample_floor(999), 6'636U);
  EXPECT_LT(sample_floor(900, 0.95), 64U);
  EXPECT_EQ(sample_floor(1000), kNever);
  EXPECT_EQ(sample_floor(900, 1), kNever);
}

TEST(Percentile, MedianTakesTheMeanOfTheMiddleTwo) {
  EXPECT_FALSE(median({}));
  EXPECT_EQ(median({5}), 5.0);
  EXPECT_EQ(median({3, 1, 2}), 2.0);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({2, 2, 2, 2}), 2.0);
}

TEST(EarlyStopping, BoundsWhatMayLieOverALimit) {
  EXPECT_NEAR(binomial_at_most(5, 1000, 0.01), 0.0661395116072514, 1e-12);
  EXPECT_EQ(binomial_at_most(3, 3, 0.5), 1);
  // One over the limit needs the sample floor.
  EXPECT_EQ(samples_needed(1, 990), 662U);
  EXPECT_EQ(samples_needed(0, 900), 44U);
  EXPECT_FALSE(allowed_over(43, 900));
  EXPECT_EQ(allowed_over(44, 900), 0U);
  EXPECT_EQ(allowed_over(63, 900), 0U);
  EXPECT_EQ(allowed_over(64, 900), 1U);
  EXPECT_FALSE(allowed_over(0, 900));
  for (const size_t over : {2U, 5U, 20U}) {
    const size_t needed = samples_needed(over, 990);
    EXPECT_EQ(allowed_over(needed, 990), over);
    EXPECT_EQ(allowed_over(needed - 1, 990), over - 1);
  }
  EXPECT_EQ(samples_needed(1, 1000), kNever);
}

TEST(EarlyStopping, UpperBoundIsTheValueThatFewEnoughExceed) {
  EXPECT_FALSE(upper_bound_rank(43, 900));
  EXPECT_EQ(upper_bound_rank(44, 900), 44U);
  EXPECT_EQ(upper_bound_rank(64, 900), 63U);
  EXPECT_GT(*upper_bound_rank(1000, 900), nearest_rank(1000, 900));
}

TEST(Binomial, RuleOfThree) {
  EXPECT_FALSE(rule_of_three(0));
  EXPECT_EQ(rule_of_three(2), 1.0);
  EXPECT_NEAR(*rule_of_three(27), 1.0 / 9, 1e-15);
}

TEST(Binomial, ClopperPearson) {
  const Interval seven = *clopper_pearson(7, 10);
  EXPECT_NEAR(seven.low, 0.3475471499399921, 1e-12);
  EXPECT_NEAR(seven.high, 0.9332604888222655, 1e-12);
  const Interval none = *clopper_pearson(0, 27);
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, 0.12770286761543387, 1e-12);
  EXPECT_EQ(clopper_pearson(27, 27)->high, 1);
  EXPECT_FALSE(clopper_pearson(0, 0));
  EXPECT_FALSE(clopper_pearson(3, 2));
}

TEST(Binomial, PassRateResamplesItems) {
  const std::vector<Item> items{{3, 3}, {2, 3}, {3, 3}, {0, 3}, {1, 3},
                                {3, 3}, {3, 3}, {2, 3}, {3, 3}};
  const PassRate rate =
      *clustered_pass_rate(items, {.seed = 1, .resamples = 200'000, .level = 0.9});
  EXPECT_EQ(rate.attempts, 27U);
  EXPECT_NEAR(rate.rate, 20.0 / 27, 1e-15);
  ASSERT_TRUE(rate.interval);
  EXPECT_EQ(rate.interval->low, 15.0 / 27);
  EXPECT_EQ(rate.interval->high, 25.0 / 27);
  EXPECT_FALSE(rate.exact_over_items);
}

TEST(Binomial, TwentySevenOfTwentySevenFromNineItemsIsNineOfNine) {
  const std::vector<Item> items(9, {3, 3});
  const PassRate rate = *clustered_pass_rate(items, {});
  EXPECT_EQ(rate.rate, 1);
  EXPECT_TRUE(rate.exact_over_items);
  EXPECT_EQ(rate.interval->low, clopper_pearson(9, 9)->low);
  EXPECT_NEAR(rate.interval->low, 0.664, 1e-3);
  const std::vector<Item> failed(9, {0, 3});
  EXPECT_EQ(clustered_pass_rate(failed, {})->interval->low, 0);
}

TEST(Binomial, PassRateRefusesWhatHasNoRate) {
  EXPECT_FALSE(clustered_pass_rate({}, {}));
  EXPECT_FALSE(clustered_pass_rate(std::vector<Item>{{0, 0}}, {}));
  EXPECT_FALSE(clustered_pass_rate(std::vector<Item>{{4, 3}}, {}));
  EXPECT_FALSE(clustered_pass_rate(std::vector<Item>{{2, 3}}, {.resamples = 100}));
  EXPECT_FALSE(clustered_pass_rate(std::vector<Item>{{2, 3}}, {})->interval);
}

}  // namespace
}  // namespace anvil::stats
