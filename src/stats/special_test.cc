#include "stats/special.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stats/portable_math.h"
#include "stats/random.h"

// Reference values: tests/reference/statistics.py (SciPy 1.17.1).

namespace anvil::stats {
namespace {

void expect_close(double value, double expected, double relative = 1e-12) {
  EXPECT_NEAR(value, expected, relative * std::fabs(expected));
}

TEST(PortableMath, AgreesWithTheLibraryToTheLastDigits) {
  Random random(5);
  for (int i = 0; i < 20'000; ++i) {
    const double x = (random.uniform() - 0.5) * 1400;
    expect_close(exp(x), std::exp(x), 4e-16);
    const double y = std::exp(x);
    EXPECT_NEAR(log(y), std::log(y), 4e-16 * std::max(1.0, std::fabs(x)));
    const double near_one = 1 + (random.uniform() - 0.5) * 1e-3;
    expect_close(log(near_one), std::log(near_one), 4e-16);
  }
}

TEST(PortableMath, HasTheEdgesOfTheLibrary) {
  EXPECT_EQ(exp(0), 1);
  EXPECT_EQ(exp(-800), 0);
  EXPECT_TRUE(std::isinf(exp(710)));
  EXPECT_GT(exp(-745), 0);
  EXPECT_EQ(log(1), 0);
  EXPECT_TRUE(std::isinf(log(0)));
  EXPECT_TRUE(std::isnan(log(-1)));
  EXPECT_TRUE(std::isnan(exp(std::numeric_limits<double>::quiet_NaN())));
  expect_close(log(std::numeric_limits<double>::denorm_min()),
               std::log(std::numeric_limits<double>::denorm_min()));
  EXPECT_EQ(power(0.5, 10), 0x1p-10);
  EXPECT_EQ(power(3, 0), 1);
}

TEST(Random, IsThePublishedGenerator) {
  uint64_t state = 1234567;
  EXPECT_EQ(splitmix64(state), 6457827717110365317U);
  EXPECT_EQ(splitmix64(state), 3203168211198807973U);
  EXPECT_EQ(splitmix64(state), 9817491932198370423U);
  Random random(1, 2, 3, 4);
  for (const uint64_t expected : {11520ULL, 0ULL, 1509978240ULL, 1215971899390074240ULL,
                                  1216172134540287360ULL, 607988272756665600ULL})
    EXPECT_EQ(random.next(), expected);
}

TEST(Random, DrawsEveryValueBelowAboutEquallyOften) {
  Random random(9);
  std::vector<int> seen(6);
  for (int i = 0; i < 60'000; ++i) ++seen[random.below(6)];
  for (const int count : seen) EXPECT_NEAR(count, 10'000, 400);
  EXPECT_EQ(random.below(1), 0U);
  EXPECT_EQ(random.below(0), 0U);
}

TEST(Random, SamplersHaveTheirMoments) {
  Random random(11);
  double exponential = 0, normal = 0, square = 0, gamma = 0, gamma_square = 0, burst = 0;
  constexpr int n = 200'000;
  for (int i = 0; i < n; ++i) {
    exponential += random.exponential(4) / n;
    const double x = random.normal();
    normal += x / n;
    square += x * x / n;
    const double g = random.gamma(2.5, 3);
    gamma += g / n;
    gamma_square += g * g / n;
    burst += random.gamma(0.25, 8) / n;
  }
  EXPECT_NEAR(exponential, 4, 0.05);
  EXPECT_NEAR(normal, 0, 0.01);
  EXPECT_NEAR(square, 1, 0.02);
  EXPECT_NEAR(gamma, 7.5, 0.06);
  EXPECT_NEAR(gamma_square - gamma * gamma, 22.5, 0.6);
  EXPECT_NEAR(burst, 2, 0.05);
}

TEST(Special, LogGamma) {
  expect_close(log_gamma(0.1), 2.252712651734206);
  EXPECT_NEAR(log_gamma(1), 0, 1e-14);
  expect_close(log_gamma(2.5), 0.28468287047291918);
  expect_close(log_gamma(7), 6.5792512120101012);
  expect_close(log_gamma(100.5), 361.43554046777757);
  expect_close(log_gamma(4000), 29172.970494954592);
}

TEST(Special, IncompleteBeta) {
  expect_close(incomplete_beta(0.5, 0.5, 0.3), 0.36901011956554536);
  expect_close(incomplete_beta(2, 3, 0.4), 0.5248);
  expect_close(incomplete_beta(10, 1, 0.95), 0.59873693923837867);
  expect_close(incomplete_beta(500, 600, 0.45), 0.38169373366484016, 1e-11);
  expect_close(incomplete_beta(6630, 7, 0.999), 0.50517726882198122, 1e-10);
  EXPECT_EQ(incomplete_beta(2, 3, 0), 0);
  EXPECT_EQ(incomplete_beta(2, 3, 1), 1);
  expect_close(incomplete_beta_inverse(2, 3, 0.5248), 0.4);
}

TEST(Special, StudentT) {
  expect_close(student_t_quantile(0.975, 2), 4.3026527297494619);
  expect_close(student_t_quantile(0.975, 1), 12.706204736174694);
  expect_close(student_t_quantile(0.8, 5), 0.91954378024082706);
  expect_close(student_t_quantile(0.995, 30), 2.7499956535672254);
  expect_close(student_t_quantile(0.1, 4), -1.5332062740589436);
  EXPECT_NEAR(student_t_quantile(0.5, 4), 0, 1e-12);
  expect_close(student_t_two_sided(2.5, 7), 0.040992218585752888);
  expect_close(student_t_above(-2.5, 7), 1 - 0.040992218585752888 / 2);
}

}  // namespace
}  // namespace anvil::stats
