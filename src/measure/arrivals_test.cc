#include "measure/arrivals.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stats/distance.h"

namespace anvil::measure {
namespace {

ArrivalSpec spec_of(ArrivalProcess process, double rate, int64_t count, uint64_t seed = 1) {
  ArrivalSpec spec;
  spec.process = process;
  spec.steps = steady_rate(rate);
  spec.count = count;
  spec.seed = seed;
  return spec;
}

std::vector<double> gaps(const std::vector<Nanos>& moments) {
  std::vector<double> out;
  for (size_t i = 1; i < moments.size(); ++i)
    out.push_back(static_cast<double>(moments[i] - moments[i - 1]) / 1e9);
  return out;
}

TEST(Arrivals, ConstantOnesComeLikeAClock) {
  const auto moments = arrivals(spec_of(ArrivalProcess::kConstant, 4, 5));
  EXPECT_EQ(moments, (std::vector<Nanos>{0, 250'000'000, 500'000'000, 750'000'000, kSecond}));
  ArrivalSpec timed = spec_of(ArrivalProcess::kConstant, 4, 0);
  timed.count.reset();
  timed.duration_s = 1.0;
  EXPECT_EQ(arrivals(timed).size(), 4u) << "an arrival at the end itself is outside";
  EXPECT_EQ(arrivals(spec_of(ArrivalProcess::kConstant, 1e-3, 2))[1], 1000 * kSecond);
  EXPECT_TRUE(arrivals(spec_of(ArrivalProcess::kConstant, 4, 0)).empty());
}

TEST(Arrivals, PoissonGapsAreExponentialAndKeepTheRate) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const auto moments = arrivals(spec_of(ArrivalProcess::kPoisson, 50, 20'000, seed));
    ASSERT_EQ(moments.size(), 20'000u);
    EXPECT_GT(moments[0], 0);
    const Json said = describe_arrivals(moments);
    // Four standard errors of the mean and of the deviation of 20,000 exponential gaps.
    EXPECT_NEAR(said["rate"].get<double>(), 50, 50 * 4 / std::sqrt(20'000.0));
    EXPECT_NEAR(said["gap_cv"].get<double>(), 1, 4 / std::sqrt(20'000.0));
    const auto distance = stats::ks_to_exponential(gaps(moments));
    ASSERT_TRUE(distance);
    EXPECT_LT(*distance, 1.63 / std::sqrt(20'000.0));
  }
}

TEST(Arrivals, GammaGapsHaveTheCoefficientOfTheirShape) {
  for (const double shape : {0.25, 1.0, 4.0}) {
    ArrivalSpec spec = spec_of(ArrivalProcess::kGamma, 10, 40'000, 7);
    spec.burstiness = shape;
    const Json said = describe_arrivals(arrivals(spec));
    EXPECT_NEAR(said["rate"].get<double>(), 10, 0.5) << shape;
    EXPECT_NEAR(said["gap_cv"].get<double>() * std::sqrt(shape), 1, 0.05) << shape;
  }
  // Far from Poisson, and measured as such.
  ArrivalSpec bursts = spec_of(ArrivalProcess::kGamma, 10, 5000, 7);
  bursts.burstiness = 0.25;
  EXPECT_GT(*stats::ks_to_exponential(gaps(arrivals(bursts))), 0.15);
}

TEST(Arrivals, EqualSpecsGiveEqualMomentsAndOtherSeedsOthers) {
  for (const auto process :
       {ArrivalProcess::kConstant, ArrivalProcess::kPoisson, ArrivalProcess::kGamma}) {
    EXPECT_EQ(arrivals(spec_of(process, 3, 1000)), arrivals(spec_of(process, 3, 1000)));
    EXPECT_EQ(arrivals(spec_of(process, 3, 1000)) == arrivals(spec_of(process, 3, 1000, 2)),
              process == ArrivalProcess::kConstant);
  }
  // Fewer of them are the beginning of more.
  const auto few = arrivals(spec_of(ArrivalProcess::kPoisson, 3, 10));
  const auto many = arrivals(spec_of(ArrivalProcess::kPoisson, 3, 100));
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
  // The same on every machine, now and later.
  EXPECT_EQ(arrivals(spec_of(ArrivalProcess::kPoisson, 1, 3, 42)),
            (std::vector<Nanos>{87'589'331, 563'981'726, 1'703'551'678}));
}

TEST(Arrivals, StepsAndRampsFollowTheProfile) {
  ArrivalSpec spec;
  spec.process = ArrivalProcess::kConstant;
  spec.steps = {{2, 2, 5}, {0, 0, 3}, {0, 8, 10}};
  spec.duration_s = 18.0;
  const auto moments = arrivals(spec);
  // 10 in the first step, none in the pause, 8 / 2 x 10 in the ramp.
  ASSERT_EQ(moments.size(), 50u);
  EXPECT_EQ(moments[9], 4'500'000'000);
  EXPECT_GE(moments[10], 8 * kSecond);
  // From 0 at 0.8 per second more each second, the k-th comes after sqrt(2 k / 0.8).
  EXPECT_NEAR(static_cast<double>(moments[30]) / 1e9, 8 + std::sqrt(2 * 20 / 0.8), 1e-6);
  EXPECT_LT(moments.back(), 18 * kSecond);
  for (size_t i = 1; i < moments.size(); ++i) EXPECT_GT(moments[i], moments[i - 1]);

  spec.process = ArrivalProcess::kPoisson;
  spec.steps = {{100, 100, 50}, {100, 20, 50}};
  spec.duration_s = 100.0;
  spec.seed = 9;
  int64_t first = 0, second = 0;
  for (const Nanos moment : arrivals(spec)) ++(moment < 50 * kSecond ? first : second);
  EXPECT_NEAR(static_cast<double>(first), 5000, 4 * std::sqrt(5000.0));
  EXPECT_NEAR(static_cast<double>(second), 3000, 4 * std::sqrt(3000.0));
}

TEST(Arrivals, ARampDownToNothingEnds) {
  ArrivalSpec spec;
  spec.process = ArrivalProcess::kConstant;
  spec.steps = {{4, 0, 10}};
  spec.duration_s = 10.0;
  EXPECT_EQ(arrivals(spec).size(), 20u);
  spec.steps = {{0, 0, 1}};
  spec.duration_s.reset();
  spec.count = 5;
  EXPECT_LE(arrivals(spec).size(), 1u) << "a rate of 0 has no second arrival";
}

TEST(Arrivals, DescriptionLeavesOutWhatIsUndefined) {
  EXPECT_EQ(describe_arrivals({}),
            (Json{{"count", 0}, {"span_s", nullptr}, {"rate", nullptr}, {"gap_cv", nullptr}}));
  EXPECT_EQ(describe_arrivals({5, 5})["rate"], nullptr);
  EXPECT_EQ(describe_arrivals({0, kSecond, 2 * kSecond}),
            (Json{{"count", 3}, {"span_s", 2.0}, {"rate", 1.0}, {"gap_cv", 0.0}}));
}

}  // namespace
}  // namespace anvil::measure
