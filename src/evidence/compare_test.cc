#include "evidence/compare.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.h"
#include "evidence/compare_metric.h"
#include "evidence/compare_values.h"
#include "evidence/json_access.h"
#include "evidence/testing/schema.h"

namespace anvil::evidence {
namespace {

Json distribution_of(double p50, int64_t n = 20) {
  return {{"n", n}, {"p50", p50}, {"p90", nullptr}, {"median_below_floor", nullptr}};
}

// Results of a run with one lane.
Json results(double ttfo_ms, double decode, double aggregate) {
  return {{"lanes",
           {{{"id", "chat"},
             {"requests", {{"total", 20}, {"ok", 20}, {"failed", 0}, {"refused", 0}}},
             {"success_rate", 1.0},
             {"ttfo_ms", distribution_of(ttfo_ms)},
             {"decode_tok_s", distribution_of(decode)},
             {"aggregate_output_tok_s", aggregate},
             {"tokens", {{"prompt", 1000}, {"completion", 500}, {"cached", nullptr}}},
             {"speculation", nullptr}}}}};
}

std::string id_of(int64_t index) {
  return "run-" + std::to_string(index);
}

// ABBA: arm b is `factor` times arm a, and pairs differ a little.
std::vector<RunForComparison> campaign(int pairs, double factor, double noise = 0.01) {
  std::vector<RunForComparison> runs;
  int64_t index = 0;
  for (int pair = 0; pair < pairs; ++pair)
    for (int turn = 0; turn < 2; ++turn) {
      const bool b = (pair + turn) % 2;
      const double wobble = 1 + noise * ((pair * 7 + turn * 3) % 5 - 2);
      const double scale = (b ? factor : 1) * wobble;
      runs.push_back({index, b ? "b" : "a", pair, id_of(index), std::nullopt,
                      results(100 / scale, 50 * scale, 400 * scale)});
      ++index;
    }
  return runs;
}

const Json kPlan = {{"primary", {{"lane", "chat"}, {"metric", "decode_tok_s"}}},
                    {"metrics", {"ttfo_ms", "aggregate_output_tok_s", "success_rate"}},
                    {"margin", 0.05},
                    {"seed", 42},
                    {"order", {"a", "b", "b", "a"}}};

Json metric_of(const Json& comparison, const std::string& name, size_t lane = 0) {
  for (const Json& metric : comparison["lanes"][lane]["metrics"])
    if (metric["metric"] == name) return metric;
  ADD_FAILURE() << "no " << name;
  return nullptr;
}

Json compared(const Json& plan, const std::vector<RunForComparison>& runs) {
  auto out = compare(plan, runs);
  EXPECT_TRUE(out) << to_string(out.error());
  const auto schema =
      base::read_file(std::string(ANVIL_SOURCE_DIR) + "/schemas/comparison.schema.json");
  EXPECT_TRUE(schema);
  for (const std::string& problem :
       testing::Schema(*base::parse_json(*schema, "schema")).check(*out))
    ADD_FAILURE() << problem;
  return *out;
}

TEST(Compare, ALargeEffectOverManyPairsResolvesInTheDirectionOfTheMetric) {
  const Json out = compared(kPlan, campaign(8, 1.5));
  const Json decode = metric_of(out, "decode_tok_s.p50");
  EXPECT_TRUE(decode["primary"]);
  EXPECT_EQ(decode["verdict"], "faster");
  EXPECT_NEAR(decode["ratio"].get<double>(), 1.5, 0.03);
  EXPECT_TRUE(decode["interval"]["trusted"]);
  EXPECT_LT(decode["interval"]["low"], decode["ratio"]);
  EXPECT_EQ(decode["signed_rank"]["p"], 2.0 / 256);
  EXPECT_EQ(decode["a12"], 1);
  EXPECT_GT(decode["shift"], 20);
  EXPECT_GT(decode["noise_floor"]["floor"], 1);
  EXPECT_EQ(decode["noise_floor"]["ratios"], 14);
  EXPECT_GT(decode["minimum_detectable_ratio"], 1);
  EXPECT_FALSE(decode["equivalence"]["equivalent"]);
  EXPECT_TRUE(decode["p_holm"].is_null());
  const Json ttfo = metric_of(out, "ttfo_ms.p50");
  EXPECT_EQ(ttfo["verdict"], "faster");
  EXPECT_LT(ttfo["ratio"], 1);
  EXPECT_GE(ttfo["p_holm"], ttfo["signed_rank"]["p"]);
  EXPECT_TRUE(ttfo["holm_rejects"]);
  EXPECT_EQ(metric_of(compared(kPlan, campaign(8, 0.7)), "ttfo_ms.p50")["verdict"], "slower");
  EXPECT_TRUE(out["pairs"]["trusted"]);
}

TEST(Compare, NoEffectIsEquivalentOrNotResolvedAndNeverNoDifference) {
  const Json tight = metric_of(compared(kPlan, campaign(10, 1, 0.005)), "decode_tok_s.p50");
  EXPECT_EQ(tight["verdict"], "equivalent");
  const Json wide = metric_of(compared(kPlan, campaign(10, 1.02, 0.08)), "decode_tok_s.p50");
  EXPECT_EQ(wide["verdict"], "not resolved");
  EXPECT_FALSE(wide["verdict_because"].get<std::string>().empty());
  Json plan = kPlan;
  plan.erase("margin");
  const Json without = metric_of(compared(plan, campaign(10, 1, 0.005)), "decode_tok_s.p50");
  EXPECT_EQ(without["verdict"], "not resolved");
  EXPECT_TRUE(without["equivalence"].is_null());
}

TEST(Compare, InsideTheNoiseFloorNothingResolvesEvenIfEveryPairAgrees) {
  // Pairs agree within 0.1 %, but the arms drift by 20 % from run to run.
  std::vector<RunForComparison> runs;
  for (int pair = 0; pair < 8; ++pair) {
    const double level = pair % 2 ? 1.2 : 1.0;
    for (const char* arm : {"a", "b"}) {
      const double value = 50 * level * (arm[0] == 'b' ? 1.03 + 0.0001 * pair : 1);
      runs.push_back({static_cast<int64_t>(runs.size()), arm, pair, id_of(pair), std::nullopt,
                      results(100, value, 400)});
    }
  }
  const Json decode = metric_of(compared({}, runs), "decode_tok_s.p50");
  EXPECT_GT(decode["noise_floor"]["floor"], 1.05);
  EXPECT_EQ(decode["verdict"], "not resolved");
  EXPECT_NE(decode["verdict_because"].get<std::string>().find("noise floor"), std::string::npos);
  EXPECT_EQ(decode["signed_rank"]["p"], 2.0 / 256);
}

TEST(Compare, FewPairsSaySo) {
  const Json two = compared(kPlan, campaign(2, 2));
  EXPECT_FALSE(two["pairs"]["trusted"]);
  const Json decode = metric_of(two, "decode_tok_s.p50");
  EXPECT_TRUE(decode["interval"].is_null());
  EXPECT_EQ(decode["verdict"], "not resolved");
  EXPECT_NE(decode["verdict_because"].get<std::string>().find("no interval can be trusted"),
            std::string::npos);
  EXPECT_TRUE(decode["signed_rank"].is_null());
  EXPECT_NE(decode["signed_rank_because"].get<std::string>().find("cannot reject"),
            std::string::npos);
  EXPECT_NEAR(decode["ratio"].get<double>(), 2, 0.1);

  const Json four = metric_of(compared(kPlan, campaign(4, 2)), "decode_tok_s.p50");
  EXPECT_FALSE(four["interval"]["trusted"]);
  EXPECT_EQ(four["verdict"], "faster");
  EXPECT_NE(four["verdict_because"].get<std::string>().find("87.5 %"), std::string::npos);
  // Equivalence is never claimed from an interval that is not trusted.
  const Json same = metric_of(compared(kPlan, campaign(4, 1, 0.001)), "decode_tok_s.p50");
  EXPECT_EQ(same["verdict"], "not resolved");
  EXPECT_FALSE(same["equivalence"]["equivalent"]);
}

TEST(Compare, TheSameInputGivesTheSameBytes) {
  EXPECT_EQ(base::canonical(compared(kPlan, campaign(6, 1.1))),
            base::canonical(compared(kPlan, campaign(6, 1.1))));
  auto shuffled = campaign(6, 1.1);
  std::reverse(shuffled.begin(), shuffled.end());
  EXPECT_EQ(base::canonical(compared(kPlan, shuffled)),
            base::canonical(compared(kPlan, campaign(6, 1.1))));
}

TEST(Compare, ExcludedRunsAreListedAndTheirEffectIsShown) {
  auto runs = campaign(4, 1.5);
  runs[2].excluded = "the engine restarted";
  runs[2].results["lanes"][0]["decode_tok_s"]["p50"] = 5000.0;
  const Json out = compared(kPlan, runs);
  ASSERT_EQ(out["excluded"].size(), 1U);
  EXPECT_EQ(out["excluded"][0]["excluded"], "the engine restarted");
  EXPECT_EQ(out["pairs"]["complete"], 3);
  EXPECT_EQ(out["pairs"]["incomplete"], 1);
  const Json decode = metric_of(out, "decode_tok_s.p50");
  EXPECT_EQ(decode["pairs"], 3);
  EXPECT_EQ(decode["medians"]["b"], 75.0);
  EXPECT_GT(decode["with_excluded"]["medians"]["b"], 75.2);
  EXPECT_TRUE(
      metric_of(compared(kPlan, campaign(4, 1.5)), "decode_tok_s.p50")["with_excluded"].is_null());
  EXPECT_EQ(out["lanes"][0]["arms"]["a"]["runs"].get<int>() +
                out["lanes"][0]["arms"]["b"]["runs"].get<int>(),
            7);
}

TEST(Compare, FailedRequestsCountBothWays) {
  auto runs = campaign(6, 1.5);
  for (RunForComparison& run : runs) {
    if (run.arm != "b") continue;
    Json& lane = run.results["lanes"][0];
    lane["requests"] = {{"total", 50}, {"ok", 20}, {"failed", 30}, {"refused", 0}};
    lane["success_rate"] = 0.4;
    lane["wall_s"] = 10.0;
    lane["curves"] = {{"decode_tok_s", Json::array({{0.5, 70.0}, {1.0, 80.0}})}};
  }
  const Json out = compared(kPlan, runs);
  const Json ttfo = metric_of(out, "ttfo_ms.p50");
  EXPECT_EQ(ttfo["verdict"], "faster");
  EXPECT_TRUE(ttfo["intention_to_treat"]["ratio"].is_null());
  EXPECT_NE(ttfo["intention_to_treat"]["values"]["b"][0]["because"].get<std::string>().find(
                "never answered"),
            std::string::npos);
  // 500 tokens in 10 s, failures and all.
  const Json aggregate = metric_of(out, "aggregate_output_tok_s");
  EXPECT_GT(aggregate["ratio"], 1);
  EXPECT_EQ(aggregate["intention_to_treat"]["medians"]["b"], 50.0);
  EXPECT_LT(aggregate["intention_to_treat"]["ratio"], 1);
  // The median request of b failed: it decoded nothing.
  EXPECT_EQ(metric_of(out, "decode_tok_s.p50")["intention_to_treat"]["medians"]["b"], 0.0);
  const Json success = metric_of(out, "success_rate");
  EXPECT_EQ(success["verdict"], "lower");
  EXPECT_EQ(out["lanes"][0]["arms"]["b"]["success_rate"], 0.4);
}

TEST(Compare, WithoutCommonValuesThereIsAReason) {
  auto runs = campaign(6, 1.5);
  for (RunForComparison& run : runs)
    if (run.arm == "b") run.results = nullptr;
  const Json decode = metric_of(compared(kPlan, runs), "decode_tok_s.p50");
  EXPECT_TRUE(decode["ratio"].is_null());
  EXPECT_EQ(decode["verdict"], "not resolved");
  EXPECT_EQ(decode["interval_because"], "no run of arm b has a value");
  EXPECT_EQ(decode["values"]["b"][0]["because"], "the run has no results of this lane");
  EXPECT_TRUE(compared(kPlan, {})["lanes"].empty());
  EXPECT_TRUE(
      compared(nullptr, {{0, "a", 0, "x", std::nullopt, Json::array({1})}})["lanes"].empty());
}

TEST(Compare, AZeroHasNoRatioButAnOrder) {
  auto runs = campaign(6, 1.5);
  for (RunForComparison& run : runs)
    if (run.arm == "b") run.results["lanes"][0]["success_rate"] = 0.0;
  const Json success = metric_of(compared(kPlan, runs), "success_rate");
  EXPECT_TRUE(success["ratio"].is_null());
  EXPECT_EQ(success["verdict"], "lower");
}

TEST(Compare, RefusesWhatItCannotCompare) {
  Json plan = kPlan;
  plan["metrics"] = {"ttft"};
  const auto unknown = compare(plan, campaign(3, 1));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, Kind::kInvalidInput);
  EXPECT_NE(unknown.error().hint.find("ttfo_ms"), std::string::npos);
  plan = kPlan;
  plan["margin"] = 0;
  EXPECT_FALSE(compare(plan, {}));
  EXPECT_FALSE(compare(kPlan, {{0, "c", 0, "x", std::nullopt, nullptr}}));
  EXPECT_FALSE(compared_metric("success_rate.p90"));
  EXPECT_EQ(compared_metric("ttfo_ms.p95")->name, "ttfo_ms.p95");
}

TEST(Compare, ArmsArePooled) {
  auto runs = campaign(2, 1.5);
  for (RunForComparison& run : runs) {
    Json& lane = run.results["lanes"][0];
    lane["speculation"] = {{"drafted", 100}, {"accepted", 55}, {"acceptance", 0.55}};
    lane["curves"] = {{"ttfo_ms", Json::array({{0.5, run.index}, {1.0, run.index + 10}})}};
  }
  Json out = compared(kPlan, runs);
  const Json& a = out["lanes"][0]["arms"]["a"];
  EXPECT_EQ(a["speculation"]["drafted"], 200);
  EXPECT_EQ(a["speculation"]["acceptance"], 0.55);
  EXPECT_EQ(a["speculation"]["source"], "answers");
  EXPECT_EQ(a["tokens"]["completion"], 1000);
  // Runs 0 and 3: a quarter of the values up to each point.
  EXPECT_EQ(a["curves"]["ttfo_ms"],
            Json::array({{0.25, 0.0}, {0.5, 3.0}, {0.75, 10.0}, {1.0, 13.0}}));
  for (RunForComparison& run : runs)
    run.results["lanes"][0]["counters"] = {
        {"drafts", 100}, {"draft_tokens", 500}, {"accepted_tokens", 275}};
  out = compared(kPlan, runs);
  EXPECT_EQ(out["lanes"][0]["arms"]["b"]["speculation"]["acceptance"], 0.55);
  EXPECT_EQ(out["lanes"][0]["arms"]["b"]["speculation"]["mean_acceptance_length"], 3.75);
  EXPECT_EQ(out["lanes"][0]["arms"]["b"]["speculation"]["source"], "engine counters");
}

TEST(Compare, PooledCurvesAreThinnedAndEndAtOne) {
  Json points = Json::array();
  for (int i = 1; i <= 500; ++i) points.push_back({i / 500.0, i});
  const Json pooled = pooled_curve({{&points, 3}, {&points, 5}});
  EXPECT_LE(pooled.size(), 96U);
  EXPECT_EQ(pooled.back()[0], 1);
  EXPECT_EQ(pooled.back()[1], 500);
  EXPECT_TRUE(pooled_curve({}).is_null());
}

TEST(CompareValues, PercentilesAmongFailures) {
  Json lane = results(100, 50, 400)["lanes"][0];
  lane["requests"]["failed"] = 5;
  const ComparedMetric ttfo = *compared_metric("ttfo_ms");
  EXPECT_FALSE(value_of_all(lane, ttfo).value);  // no curve
  lane["curves"]["ttfo_ms"] = Json::array({{0.5, 100.0}, {0.65, 130.0}, {1.0, 200.0}});
  // Rank 13 of 25 is rank 13 of the 20 that answered.
  EXPECT_EQ(value_of_all(lane, ttfo).value, 130.0);
  EXPECT_EQ(value_of_successes(lane, ttfo).value, 100.0);
  const RunValue p90 = value_of_all(lane, *compared_metric("ttfo_ms.p90"));
  EXPECT_NE(p90.because.find("below the floor of 64"), std::string::npos);
  lane["requests"]["failed"] = 20;
  EXPECT_EQ(value_of_all(lane, ttfo).value, 200.0);
  lane["requests"]["failed"] = 21;
  EXPECT_NE(value_of_all(lane, ttfo).because.find("never answered"), std::string::npos);
  const RunValue gaps = value_of_all(lane, *compared_metric("chunk_gap_ms"));
  EXPECT_NE(gaps.because.find("no value of this kind"), std::string::npos);
  EXPECT_NE(
      value_of_all(lane, *compared_metric("aggregate_output_tok_s")).because.find("wall time"),
      std::string::npos);
}

TEST(CompareValues, AMedianBelowItsFloorStandsInAndSaysSo) {
  Json lane = results(100, 50, 400)["lanes"][0];
  lane["ttfo_ms"] = {{"n", 3}, {"p50", nullptr}, {"median_below_floor", 7.0}};
  const RunValue value = value_of_successes(lane, *compared_metric("ttfo_ms"));
  EXPECT_EQ(value.value, 7.0);
  EXPECT_TRUE(value.below_floor);
  EXPECT_FALSE(value_of_successes(lane, *compared_metric("ttfo_ms.p99")).value);
  lane["ttfo_ms"] = {{"n", 300},
                     {"p50", nullptr},
                     {"median_below_floor", nullptr},
                     {"refused", {{"p50", {{"value", 0.5}, {"client_error_ms", 1.2}}}}}};
  EXPECT_NE(value_of_successes(lane, *compared_metric("ttfo_ms")).because.find("client"),
            std::string::npos);
}

// A published comparison of a draft model against none: three runs of each arm, the second control
// run left out because one of its three requests gave no visible answer and replaced by a fourth.
TEST(Compare, APublishedTableOfThreeRunsHasRatiosAndNoInterval) {
  struct Row {
    double b[3], a[3];
  };
  const Row decode{{126.61877898696345, 135.66399896434154, 130.7115725526395},
                   {63.27635427673208, 64.89020132338185, 65.7504397141746}};
  const Row throughput{{101.66158837195294, 100.68403364855827, 107.89581980765361},
                       {52.431882748330764, 59.63562926720519, 61.39048977248664}};
  const Row ttfo{{330.56650000071386, 333.9449999984936, 335.50889999605715},
                 {315.43819999933476, 299.7285000019474, 316.00109999999404}};
  const Row ttfv{{1428.6952999973437, 1042.724699997052, 1670.3684000021894},
                 {2003.1591000006301, 3533.8245000020834, 4282.079100004921}};
  const Row prefill{{8954.32537777908, 8863.735046230226, 8822.41871984554},
                    {9383.771528008474, 9875.604088302474, 9367.056000754605}};
  const Row generation{{1266.723799999454, 874.6172999963164, 1553.0376999959117},
                       {2015.1945000034175, 3590.680799999973, 4451.168900006451}};
  const Row e2e{{1597.290300000168, 1211.8998999940231, 1860.7002999997349},
                {2330.6327000027522, 3876.587099999597, 4767.170000006445}};
  std::vector<RunForComparison> runs;
  const auto add = [&](const char* arm, int64_t pair, size_t place) {
    const auto value = [&](const Row& row) { return arm[0] == 'b' ? row.b[place] : row.a[place]; };
    const auto three = [&](const Row& row) {
      return Json{{"n", 3}, {"p50", nullptr}, {"median_below_floor", value(row)}};
    };
    runs.push_back({static_cast<int64_t>(runs.size()), arm, pair,
                    std::string(arm) + std::to_string(pair), std::nullopt,
                    Json{{"lanes",
                          {{{"id", "4k"},
                            {"requests", {{"total", 3}, {"ok", 3}, {"failed", 0}}},
                            {"success_rate", 1.0},
                            {"decode_tok_s", three(decode)},
                            {"aggregate_output_tok_s", value(throughput)},
                            {"ttfo_ms", three(ttfo)},
                            {"ttfv_ms", three(ttfv)},
                            {"effective_prefill_tok_s", three(prefill)},
                            {"generation_ms", three(generation)},
                            {"e2e_ms", three(e2e)}}}}}});
  };
  for (size_t i = 0; i < 3; ++i) add("b", static_cast<int64_t>(i) + 1, i);
  add("a", 1, 0);
  add("a", 3, 1);
  add("a", 4, 2);
  runs.push_back({static_cast<int64_t>(runs.size()), "a", 2, "a2",
                  "one of three requests ended without visible content",
                  Json{{"lanes",
                        {{{"id", "4k"},
                          {"requests", {{"total", 3}, {"ok", 2}, {"failed", 1}}},
                          {"success_rate", 2.0 / 3},
                          {"aggregate_output_tok_s", 12.279}}}}}});
  const Json out =
      compared({{"primary", {{"lane", "4k"}, {"metric", "decode_tok_s"}}},
                {"metrics",
                 {"aggregate_output_tok_s", "ttfo_ms", "ttfv_ms", "effective_prefill_tok_s",
                  "generation_ms", "e2e_ms", "success_rate"}}},
               runs);
  const std::pair<const char*, double> published[] = {
      {"decode_tok_s.p50", 101.43499309123006},
      {"aggregate_output_tok_s", 70.47122604583407},
      {"ttfo_ms.p50", 5.867012936035604},
      {"ttfv_ms.p50", -59.57084739220917},
      {"effective_prefill_tok_s.p50", -5.541870667098564},
      {"generation_ms.p50", -64.72190454803268},
      {"e2e_ms.p50", -58.79648105932318}};
  for (const auto& [name, percent] : published) {
    const Json metric = metric_of(out, name);
    EXPECT_NEAR(metric["percent"].get<double>(), percent, 1e-9) << name;
    EXPECT_TRUE(metric["interval"].is_null()) << name;
    EXPECT_EQ(metric["verdict"], "not resolved") << name;
    EXPECT_TRUE(metric["signed_rank"].is_null()) << name;
  }
  EXPECT_NEAR(metric_of(out, "decode_tok_s.p50")["medians"]["b"].get<double>(), 130.7116, 1e-4);
  EXPECT_NEAR(metric_of(out, "decode_tok_s.p50")["medians"]["a"].get<double>(), 64.8902, 1e-4);
  EXPECT_EQ(out["pairs"]["complete"], 2);
  EXPECT_FALSE(out["pairs"]["trusted"]);
  EXPECT_EQ(out["excluded"].size(), 1U);
  // With the run that was left out the control is slower, and the gain looks larger.
  const Json throughput_metric = metric_of(out, "aggregate_output_tok_s");
  EXPECT_GT(throughput_metric["with_excluded"]["percent"], throughput_metric["percent"]);
  EXPECT_EQ(throughput_metric["with_excluded"]["medians"]["a"],
            (52.431882748330764 + 59.63562926720519) / 2);
}

}  // namespace
}  // namespace anvil::evidence
