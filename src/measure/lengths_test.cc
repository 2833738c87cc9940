#include "measure/lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace anvil::measure {
namespace {

Length length(const char* json) {
  const auto read = read_length(Json::parse(json), 1);
  EXPECT_TRUE(read) << base::to_string(read.error());
  return read.value_or(Length());
}

std::vector<int64_t> draws(const Length& from, size_t n, uint64_t seed = 3) {
  stats::Random random(seed);
  std::vector<int64_t> out;
  for (size_t i = 0; i < n; ++i) out.push_back(from.draw(random));
  return out;
}

TEST(Lengths, ANumberIsAFixedLength) {
  EXPECT_EQ(length("512"), Length(512));
  EXPECT_EQ(length(R"({"dist":"fixed","value":512})"), Length(512));
  EXPECT_EQ(draws(Length(7), 3), (std::vector<int64_t>{7, 7, 7}));
}

TEST(Lengths, DrawsFollowTheDistributionAndRepeat) {
  const Length uniform = length(R"({"dist":"uniform","min":10,"max":13})");
  std::map<int64_t, int> seen;
  for (const int64_t tokens : draws(uniform, 4000)) ++seen[tokens];
  ASSERT_EQ(seen.size(), 4u);
  for (const auto& [tokens, times] : seen) EXPECT_NEAR(times, 1000, 120) << tokens;
  EXPECT_EQ(draws(uniform, 50), draws(uniform, 50));
  EXPECT_NE(draws(uniform, 50), draws(uniform, 50, 4));

  auto drawn = draws(
      length(R"({"dist":"lognormal","median":800,"sigma":0.5,"min":300,"max":2000})"), 10'001);
  std::sort(drawn.begin(), drawn.end());
  EXPECT_NEAR(static_cast<double>(drawn[5000]), 800, 25);
  EXPECT_NEAR(static_cast<double>(drawn[8413]), 800 * 1.6487, 60) << "one deviation up";
  EXPECT_EQ(drawn.front(), 300);
  EXPECT_EQ(drawn.back(), 2000);

  seen.clear();
  for (const int64_t tokens :
       draws(length(R"({"dist":"empirical","values":[5,9],"weights":[3,1]})"), 4000))
    ++seen[tokens];
  EXPECT_NEAR(seen[5], 3000, 120);
  EXPECT_EQ(seen[5] + seen[9], 4000);
  seen.clear();
  for (const int64_t tokens : draws(length(R"({"dist":"empirical","values":[5,9,5]})"), 3000))
    ++seen[tokens];
  EXPECT_NEAR(seen[5], 2000, 120);
}

TEST(Lengths, TypicalIsOneNumber) {
  EXPECT_EQ(Length(9).typical(), 9);
  EXPECT_EQ(length(R"({"dist":"uniform","min":10,"max":20})").typical(), 15);
  EXPECT_EQ(length(R"({"dist":"lognormal","median":80,"sigma":1})").typical(), 80);
  EXPECT_EQ(length(R"({"dist":"empirical","values":[5,9,7]})").typical(), 9);
}

TEST(Lengths, RefusesWhatIsNone) {
  for (const char* json :
       {R"("9")", "0", "1.5", "99999999", "{}", R"({"dist":"normal"})", R"({"dist":"fixed"})",
        R"({"dist":"uniform","min":9})", R"({"dist":"uniform","min":9,"max":8})",
        R"({"dist":"lognormal","median":9})", R"({"dist":"lognormal","median":9,"sigma":0})",
        R"({"dist":"empirical","values":[]})", R"({"dist":"empirical","values":[0]})",
        R"({"dist":"empirical","values":[1],"weights":[1,2]})",
        R"({"dist":"empirical","values":[1],"weights":[-1]})"})
    EXPECT_FALSE(read_length(Json::parse(json), 1)) << json;
}

}  // namespace
}  // namespace anvil::measure
