#include "evidence/curve.h"

#include <gtest/gtest.h>

namespace anvil::evidence {
namespace {

TEST(Curve, FewValuesAreTheEmpiricalDistribution) {
  std::vector<int64_t> nanos{3'000'000, 1'000'000, 2'000'000, 10'000'000};
  EXPECT_EQ(curve_ms(nanos), Json::parse("[[0.25,1.0],[0.5,2.0],[0.75,3.0],[1.0,10.0]]"));
}

TEST(Curve, ManyValuesAreThinnedButKeepBothEndsAndTheTail) {
  std::vector<double> values;
  for (int i = 1; i <= 100'000; ++i) values.push_back(i);
  const Json points = curve(values);
  EXPECT_LE(points.size(), 97U);
  EXPECT_EQ(points.front()[1], 1.0);
  EXPECT_EQ(points.back(), Json::parse("[1.0,100000.0]"));
  int beyond_p99 = 0;
  for (size_t i = 1; i < points.size(); ++i) {
    EXPECT_LT(points[i - 1][0].get<double>(), points[i][0].get<double>());
    beyond_p99 += points[i][0].get<double>() > 0.99;
  }
  EXPECT_GT(beyond_p99, 30);
}

TEST(Curve, NothingOfNothing) {
  std::vector<double> none;
  EXPECT_TRUE(curve(none).is_null());
}

}  // namespace
}  // namespace anvil::evidence
