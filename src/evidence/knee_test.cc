#include "evidence/knee.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "stats/random.h"

namespace anvil::evidence {
namespace {

// Share of requests that keep the limit, by rate.
using Response = std::function<double(double)>;

KneeSearch search_of(const KneeOptions& options) {
  auto made = KneeSearch::make(options);
  EXPECT_TRUE(made);
  return std::move(*made);
}

// Runs a search against a response without noise (no `random`), or with binomial draws.
KneeSearch run(const KneeOptions& options, const Response& response,
               stats::Random* random = nullptr) {
  KneeSearch search = search_of(options);
  int probes = 0;
  while (const auto probe = search.next()) {
    EXPECT_LE(++probes, options.max_probes);
    EXPECT_GE(probe->rate, options.floor);
    EXPECT_LE(probe->rate, options.ceiling);
    EXPECT_GE(probe->requests, 1);
    EXPECT_LE(probe->requests, options.most_requests);
    const double share = response(probe->rate);
    int64_t met = std::llround(share * static_cast<double>(probe->requests));
    if (random) {
      met = 0;
      for (int64_t i = 0; i < probe->requests; ++i) met += random->uniform() < share;
    }
    EXPECT_TRUE(search.add(probe->rate, {{"ttfo_ms_p90", 0.9, met, probe->requests}}));
    if (probes > options.max_probes) break;
  }
  return search;
}

Response cliff(double knee) {
  return [knee](double rate) { return rate <= knee ? 0.99 : 0.5; };
}

TEST(Knee, FindsACliffWithinTheResolution) {
  for (const double knee : {0.3, 1.0, 5.7, 80.0, 900.0}) {
    KneeOptions options;
    options.max_probes = 40;
    const Json result = run(options, cliff(knee)).result();
    EXPECT_EQ(result["outcome"], "bracketed") << result.dump(1);
    EXPECT_LE(result["rate"].get<double>(), knee);
    EXPECT_GT(result["breaks_at"].get<double>(), knee);
    EXPECT_LE(result["breaks_at"].get<double>(), result["rate"].get<double>() * 1.1);
    EXPECT_EQ(result["proven"], true);
    EXPECT_NE(result["statement"].get<std::string>().find("keeps the objectives (95 %"),
              std::string::npos);
  }
}

TEST(Knee, DoublesFirstThenHalvesOnTheLogScale) {
  KneeOptions options;
  options.start = 2;
  KneeSearch search = search_of(options);
  std::vector<double> rates;
  while (const auto probe = search.next()) {
    rates.push_back(probe->rate);
    ASSERT_TRUE(search.add(probe->rate, {{"o", 0.9, probe->rate <= 9 ? 100 : 10, 100}}));
  }
  ASSERT_GE(rates.size(), 5u);
  EXPECT_EQ(std::vector<double>(rates.begin(), rates.begin() + 4),
            (std::vector<double>{2, 4, 8, 16}));
  EXPECT_NEAR(rates[4], std::sqrt(8.0 * 16), 1e-12);
  EXPECT_NEAR(rates[5], std::sqrt(8.0 * rates[4]), 1e-12);
}

TEST(Knee, SaysWhenItIsNotBracketed) {
  KneeOptions options;
  options.ceiling = 10;
  Json result = run(options, cliff(1e9)).result();
  EXPECT_EQ(result["outcome"], "not-reached");
  EXPECT_EQ(result["rate"], 10.0);
  EXPECT_EQ(result["breaks_at"], nullptr);
  EXPECT_NE(result["statement"].get<std::string>().find("the knee lies above"), std::string::npos);

  result = run(options, cliff(0)).result();
  EXPECT_EQ(result["outcome"], "below-floor");
  EXPECT_EQ(result["rate"], nullptr);
  EXPECT_EQ(result["breaks_at"], 0.05);
  EXPECT_EQ(result["proven"], false);

  options.ceiling = 1e4;
  options.max_probes = 3;
  result = run(options, cliff(1000)).result();
  EXPECT_EQ(result["outcome"], "probes-used-up");
  EXPECT_EQ(result["rate"], 4.0);
  EXPECT_NE(result["statement"].get<std::string>().find("ran out of probes"), std::string::npos);

  EXPECT_EQ(search_of(options).result()["outcome"], "no-answer");
}

TEST(Knee, MeasuresUndecidedRatesAgainAndThenTakesThemAsTheySeem) {
  KneeOptions options;
  options.max_probes = 3;
  // 91 % observed proves neither side of 90 %.
  const KneeSearch search = run(options, [](double) { return 0.91; });
  ASSERT_EQ(search.points().size(), 1u);
  const KneePoint& point = search.points()[0];
  EXPECT_EQ(point.probes, 3);
  EXPECT_EQ(point.objectives[0].n, 400);
  EXPECT_EQ(point.verdict, KneeVerdict::kSeemsToKeep);
  const Json result = search.result();
  EXPECT_EQ(result["proven"], false);
  EXPECT_NE(result["statement"].get<std::string>().find("not proven"), std::string::npos);
  EXPECT_EQ(run(options, [](double) { return 0.89; }).points()[0].verdict,
            KneeVerdict::kSeemsToBreak);
}

TEST(Knee, EveryObjectiveMustHold) {
  KneeOptions options;
  KneeSearch search = search_of(options);
  ASSERT_TRUE(search.add(1, {{"ttfo_ms_p90", 0.9, 100, 100}, {"tpot_ms_p50", 0.5, 20, 100}}));
  EXPECT_EQ(search.points()[0].verdict, KneeVerdict::kBreaks);
  ASSERT_TRUE(search.add(0.5, {{"ttfo_ms_p90", 0.9, 100, 100}, {"tpot_ms_p50", 0.5, 70, 100}}));
  EXPECT_EQ(search.points()[0].verdict, KneeVerdict::kKeeps);
  // Ten requests cannot prove 99 %, however good.
  KneeSearch few = search_of(options);
  ASSERT_TRUE(few.add(1, {{"ttfo_ms_p99", 0.99, 10, 10}}));
  EXPECT_EQ(few.points()[0].verdict, KneeVerdict::kUndecided);
}

TEST(Knee, NoiseAroundTheCliffMovesItOnlyThere) {
  // Falls from 0.99 to 0.6 between 18 and 24 requests/s.
  const Response slope = [](double rate) {
    return rate <= 18 ? 0.99 : rate >= 24 ? 0.6 : 0.99 - (rate - 18) / 6 * 0.39;
  };
  KneeOptions options;
  options.max_probes = 60;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    stats::Random random(seed);
    const Json result = run(options, slope, &random).result();
    ASSERT_EQ(result["outcome"], "bracketed") << result.dump(1);
    EXPECT_GE(result["rate"].get<double>(), 15) << seed;
    EXPECT_LE(result["rate"].get<double>(), 21) << seed;
  }
}

TEST(Knee, ARateThatBrokeIsNeverPassed) {
  // Broken around 4, fine again above: the knee is below 4.
  const Response dip = [](double rate) { return (rate > 3 && rate < 5) || rate > 50 ? 0.3 : 0.99; };
  KneeOptions options;
  options.start = 16;
  Json result = run(options, dip).result();
  EXPECT_GT(result["rate"].get<double>(), 40) << "a dip below the start is not seen";
  options.start = 1;
  result = run(options, dip).result();
  EXPECT_LE(result["rate"].get<double>(), 3);
  EXPECT_EQ(result["outcome"], "bracketed");

  // A higher rate that kept does not count once a lower one broke.
  KneeSearch search = search_of(options);
  ASSERT_TRUE(search.add(8, {{"o", 0.9, 100, 100}}));
  ASSERT_TRUE(search.add(4, {{"o", 0.9, 10, 100}}));
  ASSERT_TRUE(search.add(2, {{"o", 0.9, 100, 100}}));
  EXPECT_EQ(search.result()["rate"], 2.0);
  EXPECT_EQ(search.result()["breaks_at"], 4.0);
}

TEST(Knee, RefusesWhatMakesNoSense) {
  const auto with = [](auto change) {
    KneeOptions options;
    change(options);
    return KneeSearch::make(options).has_value();
  };
  EXPECT_TRUE(with([](KneeOptions&) {}));
  EXPECT_FALSE(with([](KneeOptions& o) { o.floor = 0; }));
  EXPECT_FALSE(with([](KneeOptions& o) { o.ceiling = 0.01; }));
  EXPECT_FALSE(with([](KneeOptions& o) { o.start = 1e6; }));
  EXPECT_FALSE(with([](KneeOptions& o) { o.start = std::nan(""); }));
  EXPECT_FALSE(with([](KneeOptions& o) { o.resolution = 1; }));
  EXPECT_FALSE(with([](KneeOptions& o) { o.max_probes = 0; }));
  EXPECT_FALSE(with([](KneeOptions& o) { o.most_requests = 10; }));
  EXPECT_FALSE(with([](KneeOptions& o) { o.confidence = 1; }));
  KneeSearch search = search_of({});
  EXPECT_FALSE(search.add(1, {}));
  EXPECT_FALSE(search.add(1, {{"o", 0.9, 5, 4}}));
  EXPECT_FALSE(search.add(1, {{"o", 0.9, 0, 0}}));
  ASSERT_TRUE(search.add(1, {{"o", 0.9, 4, 4}}));
  EXPECT_FALSE(search.add(1, {{"other", 0.9, 4, 4}}));
}

}  // namespace
}  // namespace anvil::evidence
