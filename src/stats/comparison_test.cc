#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/hash.h"
#include "stats/bootstrap.h"
#include "stats/decision.h"
#include "stats/distance.h"
#include "stats/percentile.h"
#include "stats/rank_tests.h"
#include "stats/series.h"

// Reference values: tests/reference/statistics.py (SciPy 1.17.1).

namespace anvil::stats {
namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();
const std::vector<double> kA{10.1, 9.7, 10.4, 9.9, 10.0, 10.6, 9.8, 10.2};
const std::vector<double> kB{9.4, 9.6, 10.3, 9.1, 9.5, 9.9, 9.2, 9.8};

std::vector<double> paired_differences() {
  std::vector<double> out;
  for (size_t i = 0; i < kA.size(); ++i) out.push_back(kB[i] - kA[i]);
  return out;
}

std::vector<Block> paired_blocks() {
  std::vector<Block> out;
  for (size_t i = 0; i < kA.size(); ++i) out.push_back({{kA[i]}, {kB[i]}});
  return out;
}

TEST(Bootstrap, RatioOfMediansWithAnIntervalOverPairs) {
  const auto ratio = *ratio_of_medians(paired_blocks(), {.seed = 7});
  EXPECT_NEAR(ratio.ratio, 9.55 / 10.05, 1e-15);
  const Interval interval = *ratio.interval(0.95);
  EXPECT_NEAR(interval.low, 0.93, 2e-3);
  EXPECT_NEAR(interval.high, 0.97462, 2e-3);
  const Interval narrow = *ratio.interval(0.90);
  EXPECT_GE(narrow.low, interval.low);
  EXPECT_LE(narrow.high, interval.high);
}

TEST(Bootstrap, TheSameSeedGivesTheSameBits) {
  const auto first = *ratio_of_medians(paired_blocks(), {.seed = 7});
  EXPECT_EQ(first.resampled, ratio_of_medians(paired_blocks(), {.seed = 7})->resampled);
  EXPECT_NE(first.resampled, ratio_of_medians(paired_blocks(), {.seed = 8})->resampled);
  // The digest is the same on every machine: only IEEE operations are used.
  std::string text;
  for (const double value : first.resampled) {
    char hex[40];
    std::snprintf(hex, sizeof hex, "%a,", value);
    text += hex;
  }
  EXPECT_EQ(base::sha256(text), "1701a4935a299684ab32af22410f7cde53ec53b69f6eb6479c49d99067a6026d");
}

TEST(Bootstrap, BlocksKeepTheirValuesTogether) {
  // Two requests per run: a draw never mixes half of a run in.
  const std::vector<Block> blocks{{{1, 3}, {2, 6}}, {{10, 30}, {20, 60}}};
  const auto ratio = *ratio_of_medians(blocks, {.seed = 1});
  for (const double value : ratio.resampled) EXPECT_EQ(value, 2);
}

TEST(Bootstrap, HalfPairsCountForTheirArm) {
  const std::vector<Block> blocks{{{10}, {20}}, {{11}, {}}, {{}, {22}}};
  const auto ratio = *ratio_of_medians(blocks, {.seed = 1});
  EXPECT_EQ(ratio.median_a, 10.5);
  EXPECT_EQ(ratio.median_b, 21);
  EXPECT_EQ(ratio.resampled.size(), kFewestResamples);
}

TEST(Bootstrap, ArmsThatAreNotPairedAreDrawnApart) {
  const auto ratio = *ratio_of_medians(kA, kB, {.seed = 3});
  EXPECT_NEAR(ratio.ratio, 9.55 / 10.05, 1e-15);
  EXPECT_LT(ratio.interval(0.95)->high, 1);
}

TEST(Bootstrap, RefusesWhatHasNoRatio) {
  const std::vector<Block> one{{{1}, {2}}};
  EXPECT_FALSE(ratio_of_medians(one, {})->interval(0.95));
  EXPECT_FALSE(ratio_of_medians(std::span<const Block>{}, {}));
  EXPECT_FALSE(ratio_of_medians(std::vector<Block>{{{1}, {}}, {{2}, {}}}, {}));
  EXPECT_FALSE(ratio_of_medians(std::vector<Block>{{{0}, {1}}, {{2}, {1}}}, {}));
  EXPECT_FALSE(ratio_of_medians(std::vector<Block>{{{kNaN}, {1}}, {{2}, {1}}}, {}));
  EXPECT_FALSE(ratio_of_medians(paired_blocks(), {.resamples = 9'999}));
  EXPECT_FALSE(ratio_of_medians(paired_blocks(), {.level = 1}));
}

TEST(RankTests, HodgesLehmann) {
  EXPECT_NEAR(*hodges_lehmann(paired_differences()), -0.5, 1e-12);
  EXPECT_NEAR(*hodges_lehmann(kA, kB), -0.5, 1e-12);
  EXPECT_EQ(*hodges_lehmann(std::vector<double>{4}), 4);
  EXPECT_EQ(*hodges_lehmann(std::vector<double>{4, 4, 4}), 4);
  EXPECT_FALSE(hodges_lehmann(std::span<const double>{}));
  EXPECT_FALSE(hodges_lehmann(std::vector<double>{1, kNaN}));
  EXPECT_FALSE(hodges_lehmann(kA, std::span<const double>{}));
  EXPECT_FALSE(hodges_lehmann(std::vector<double>(7'071, 1.0)));
}

TEST(RankTests, SignedRankIsExact) {
  const SignedRank all_below = *wilcoxon_signed_rank(paired_differences());
  EXPECT_EQ(all_below.w_plus, 0);
  EXPECT_EQ(all_below.w_minus, 36);
  EXPECT_EQ(all_below.p_two_sided, 0.0078125);
  EXPECT_TRUE(all_below.can_reject);
  const auto twelve =
      *wilcoxon_signed_rank(std::vector<double>{1, 2, -3, 4, 5, 6, -7, 8, 9, 10, 11, 12});
  EXPECT_NEAR(twelve.p_two_sided, 0.02099609375, 1e-15);
}

TEST(RankTests, SignedRankSharesTiedRanksAndLeavesZerosOut) {
  const SignedRank tied = *wilcoxon_signed_rank(std::vector<double>{1, 1, -1, 2, 2, -3, 4, 0, 5});
  EXPECT_EQ(tied.zeros, 1U);
  EXPECT_EQ(tied.w_plus, 28);
  EXPECT_NEAR(tied.p_two_sided, 0.171875, 1e-15);
  const SignedRank zeros = *wilcoxon_signed_rank(std::vector<double>{0, 0, 0});
  EXPECT_EQ(zeros.p_two_sided, 1);
  EXPECT_FALSE(zeros.can_reject);
}

TEST(RankTests, SignedRankCannotRejectBelowSixPairs) {
  const SignedRank five = *wilcoxon_signed_rank(std::vector<double>{1, 2, 3, 4, 5});
  EXPECT_EQ(five.p_two_sided, 0.0625);
  EXPECT_FALSE(five.can_reject);
  const SignedRank six = *wilcoxon_signed_rank(std::vector<double>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(six.p_two_sided, 0.03125);
  EXPECT_TRUE(six.can_reject);
  EXPECT_EQ(wilcoxon_signed_rank(std::span<const double>{})->p_two_sided, 1);
  EXPECT_FALSE(wilcoxon_signed_rank(std::vector<double>{1, kInfinity}));
  EXPECT_FALSE(wilcoxon_signed_rank(std::vector<double>(301, 1.0)));
  EXPECT_TRUE(wilcoxon_signed_rank(std::vector<double>(300, 1.0)));
}

TEST(RankTests, MannWhitney) {
  const auto result = *mann_whitney(std::vector<double>{1.1, 2.2, 3.3, 4.4, 9.9},
                                    std::vector<double>{5.5, 6.6, 7.7, 8.8});
  EXPECT_EQ(result.u, 16);
  EXPECT_NEAR(result.p_two_sided, 0.19047619047619047, 1e-12);
  const std::vector<double> same{3, 3, 3};
  EXPECT_EQ(mann_whitney(same, same)->p_two_sided, 1);
  EXPECT_EQ(mann_whitney(same, same)->u, 4.5);
  EXPECT_FALSE(mann_whitney(same, {}));
  EXPECT_FALSE(mann_whitney(std::vector<double>(60, 1.0), std::vector<double>(41, 1.0)));
}

TEST(Distance, KolmogorovSmirnov) {
  const auto close = *ks_two_sample(kA, kB);
  EXPECT_NEAR(close.d, 0.625, 1e-12);
  EXPECT_NEAR(close.p, 0.08702408702408701, 1e-12);
  EXPECT_TRUE(close.exact);
  std::vector<double> low, high;
  for (int i = 0; i < 50; ++i) low.push_back(i);
  for (int i = 0; i < 70; ++i) high.push_back(i + 9.5);
  const auto far = *ks_two_sample(low, high);
  EXPECT_NEAR(far.d, 0.42857142857142855, 1e-12);
  EXPECT_NEAR(far.p, 2.512106079049684e-05, 1e-12);
  EXPECT_EQ(ks_two_sample(kA, kA)->p, 1);
  EXPECT_EQ(ks_two_sample(std::vector<double>{1}, std::vector<double>{2})->p, 1);
  EXPECT_FALSE(ks_two_sample(kA, {}));
  EXPECT_FALSE(ks_two_sample(kA, std::vector<double>{kNaN}));
}

TEST(Distance, ManyValuesUseTheLimitDistribution) {
  std::vector<double> a, b;
  for (int i = 0; i < 6'000; ++i) {
    a.push_back(i);
    b.push_back(i + 130.5);
  }
  const auto result = *ks_two_sample(a, b);
  EXPECT_FALSE(result.exact);
  EXPECT_NEAR(result.d, 131.0 / 6'000, 1e-12);
  // scipy.special.kolmogorov((sqrt(3000) + 0.12 + 0.11 / sqrt(3000)) * d).
  EXPECT_NEAR(result.p, 0.11304642037056899, 1e-9);
  EXPECT_EQ(ks_two_sample(a, a)->p, 1);
}

TEST(Distance, WassersteinAndA12) {
  EXPECT_NEAR(*wasserstein1(kA, kB), 0.4875, 1e-12);
  EXPECT_NEAR(*wasserstein1(std::vector<double>{0, 1, 3}, std::vector<double>{5, 6}),
              4.1666666666666661, 1e-12);
  EXPECT_EQ(*wasserstein1(kA, kA), 0);
  EXPECT_FALSE(wasserstein1({}, kA));
  EXPECT_EQ(*a12(kA, kB), 0.84375);
  EXPECT_EQ(*a12(kA, kA), 0.5);
  EXPECT_EQ(*a12(std::vector<double>{2}, std::vector<double>{1}), 1);
  EXPECT_FALSE(a12({}, kA));
  EXPECT_FALSE(a12(kA, {}));
  EXPECT_NEAR(*ks_to_exponential(kA), 0.61771394725674911, 1e-12);
  EXPECT_FALSE(ks_to_exponential(std::vector<double>{-1, 2}));
}

TEST(Decision, HolmStepsDown) {
  // 0.01 * 4, 0.02 * 3, then 0.03 * 2 and 0.04 * 1 rise to the 0.06 before.
  const std::vector<double> adjusted = *holm(std::vector<double>{0.04, 0.01, 0.03, 0.02});
  const std::vector<double> expected{0.06, 0.04, 0.06, 0.06};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(adjusted[i], expected[i], 1e-15);
  EXPECT_EQ(*holm(std::vector<double>{0.7, 0.8}), (std::vector<double>{1, 1}));
  EXPECT_TRUE(holm({})->empty());
  EXPECT_FALSE(holm(std::vector<double>{0.5, kNaN}));
  EXPECT_FALSE(holm(std::vector<double>{1.5}));
}

TEST(Decision, EquivalenceNeedsTheWholeIntervalInsideTheMargin) {
  EXPECT_TRUE(tost({0.97, 1.03, 0.9}, 0.05)->equivalent);
  EXPECT_FALSE(tost({0.95, 1.03, 0.9}, 0.05)->equivalent);  // below 1 / 1.05
  EXPECT_FALSE(tost({0.97, 1.06, 0.9}, 0.05)->equivalent);
  EXPECT_FALSE(tost({0.97, 1.03, 0.9}, 0));
  EXPECT_FALSE(tost({0.97, 1.03, 0.9}, kNaN));
}

TEST(Decision, NoiseFloorFallsWithPairs) {
  const std::vector<double> ratios{1.02, 0.97, 1.05, 0.99};
  const auto six = **noise_floor(ratios, 6);
  EXPECT_NEAR(six.floor, 1.0447671521741697, 1e-12);
  EXPECT_NEAR(six.largest, 1.05, 1e-12);
  EXPECT_NEAR(six.typical, (1.02 + 1 / 0.97) / 2, 1e-12);
  EXPECT_GT((*noise_floor(ratios, 3))->floor, six.floor);
  // One control says little.
  EXPECT_GT((*noise_floor(std::vector<double>{1.02}, 6))->floor, 1.1);
  EXPECT_EQ((*noise_floor(std::vector<double>{1, 1}, 6))->floor, 1);
  EXPECT_FALSE(noise_floor({}, 6)->has_value());
  EXPECT_FALSE(noise_floor(ratios, 0)->has_value());
  EXPECT_FALSE(noise_floor(std::vector<double>{0}, 6));
}

TEST(Decision, MinimumDetectableRatio) {
  EXPECT_NEAR(*minimum_detectable_ratio(0.05, 10), 1.0509932682148677, 1e-12);
  EXPECT_EQ(*minimum_detectable_ratio(0, 10), 1);
  EXPECT_FALSE(minimum_detectable_ratio(0.05, 1));
  EXPECT_FALSE(minimum_detectable_ratio(kNaN, 10));
  EXPECT_NEAR(*standard_deviation(std::vector<double>{2, 4, 4, 4, 5, 5, 7, 9}), 2.1380899352993952,
              1e-12);
  EXPECT_FALSE(standard_deviation(std::vector<double>{1}));
}

TEST(Series, LinearSlope) {
  const std::vector<double> x{0, 1, 2, 3, 4, 5, 6, 7};
  const Slope slope = *linear_slope(x, kA);
  EXPECT_NEAR(slope.slope, 0.022619047619047643, 1e-12);
  EXPECT_NEAR(slope.intercept, 10.008333333333331, 1e-12);
  EXPECT_NEAR(slope.standard_error, 0.04989122711164729, 1e-12);
  EXPECT_NEAR(slope.p_two_sided, 0.6662189895048211, 1e-12);
  EXPECT_NEAR(slope.interval.low, -0.09946038726860779, 1e-12);
  EXPECT_NEAR(slope.interval.high, 0.14469848250670306, 1e-12);
  EXPECT_EQ(linear_slope(x, std::vector<double>(8, 3.0))->p_two_sided, 1);
  EXPECT_EQ(linear_slope(x, x)->p_two_sided, 0);
  EXPECT_FALSE(linear_slope(std::vector<double>{1, 1, 1}, std::vector<double>{1, 2, 3}));
  EXPECT_FALSE(linear_slope(std::vector<double>{1, 2}, std::vector<double>{1, 2}));
  EXPECT_FALSE(linear_slope(x, std::vector<double>{1, 2, 3}));
}

TEST(Series, SteadyDriftingAndUndecided) {
  const std::vector<double> x{0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<double> level{100, 101, 100, 99, 100, 101, 99, 100};
  EXPECT_EQ(steady_state(x, level)->verdict, Steadiness::kSteady);
  std::vector<double> rising = level;
  for (size_t i = 0; i < rising.size(); ++i) rising[i] += 3.0 * static_cast<double>(i);
  EXPECT_EQ(steady_state(x, rising)->verdict, Steadiness::kDrifting);
  EXPECT_NEAR(steady_state(x, rising)->drift, 0.18, 0.03);
  EXPECT_EQ(steady_state(x, kA)->verdict, Steadiness::kUndecided);
  EXPECT_FALSE(steady_state(x, std::vector<double>(8, 0.0)));
}

TEST(Series, BatchMeans) {
  const BatchMeans means = *batch_means(kA, 4);
  EXPECT_NEAR(means.mean, 10.0875, 1e-12);
  EXPECT_NEAR(means.standard_error, 0.0875, 1e-12);
  EXPECT_NEAR(means.interval.low, 9.809035948287672, 1e-12);
  EXPECT_NEAR(means.interval.high, 10.365964051712325, 1e-12);
  std::vector<double> nine = kA;
  nine.insert(nine.begin(), 999);
  EXPECT_EQ(batch_means(nine, 4)->dropped, 1U);
  EXPECT_NEAR(batch_means(nine, 4)->mean, 10.0875, 1e-12);
  const std::vector<double> flat(40, 2.0);
  EXPECT_EQ(batch_means(flat)->standard_error, 0);
  EXPECT_EQ(batch_means(flat)->lag1_correlation, 0);
  EXPECT_FALSE(batch_means(kA, 9));
  EXPECT_FALSE(batch_means(kA, 1));
}

}  // namespace
}  // namespace anvil::stats
