// The published r16 campaign, whose raw files are not part of the repository: $ANVIL_SHARED names
// the folder that holds them as data/r16-evidence.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "evidence/import/import.h"

namespace anvil::evidence::imported {
namespace {

class R16 : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("ANVIL_SHARED");
    if (!folder || !*folder)
      GTEST_SKIP() << "ANVIL_SHARED is not set: the campaign's raw files are not here";
    const std::string data = base::join_path(folder, "data/r16-evidence");
    if (!base::is_directory(data)) GTEST_SKIP() << data << " is not there";
    auto all = reanalyse(data);
    ASSERT_TRUE(all) << base::to_string(all.error());
    all_ = std::move(*all);
  }

  const Figure& printed(std::string_view table, std::string_view figure) const {
    for (const auto& one : all_.figures)
      if (one.group == table && one.figure == figure) return one;
    static const Figure none;
    ADD_FAILURE() << table << ": " << figure << " is not listed";
    return none;
  }
  const Figure& at(std::string_view where, std::string_view figure = {}) const {
    for (const auto& one : all_.figures)
      if (one.where == where && (figure.empty() || one.figure == figure)) return one;
    static const Figure none;
    ADD_FAILURE() << where << " is not listed";
    return none;
  }
  const Json& values(std::string_view finding) const {
    for (const auto& one : all_.findings)
      if (one.id == finding) return one.values;
    static const Json none = Json::object();
    ADD_FAILURE() << "no finding " << finding;
    return none;
  }

  Reanalysis all_;
};

constexpr const char* kTable = "speculation against none at 4K";
const std::string kComparison = "r16-b12x-dspark5-vs-nospec-4k-c1-comparison.json#";

TEST_F(R16, EveryFileIsReadWhole) {
  EXPECT_EQ(all_.campaign.documents.size(), 23u);
  for (const auto& document : all_.campaign.documents)
    for (const auto& problem : document->problems)
      ADD_FAILURE() << place(*document, problem.pointer) << ": " << problem.what;
  // 20 answered and 1 failed capacity requests, 9 rungs, 32 preflight observations, 27 attempts.
  EXPECT_EQ(all_.campaign.rows().size(), 21u + 9u + 32u + 27u);
}

TEST_F(R16, TheComparisonComesOutOfItsRows) {
  const struct {
    const char* metric;
    double treatment, control, change;
  } expected[] = {{"decode_tok_s_p50", 130.7116, 64.8902, 101.435},
                  {"throughput_tok_s", 101.6616, 59.6356, 70.471},
                  {"time_to_first_output_p50_ms", 333.945, 315.438, 5.867},
                  {"ttft_p50_ms", 1428.695, 3533.825, -59.571},
                  {"effective_prefill_tok_s_p50", 8863.735, 9383.772, -5.542},
                  {"generation_p50_ms", 1266.724, 3590.681, -64.722},
                  {"e2e_p50_ms", 1597.290, 3876.587, -58.796}};
  for (const auto& one : expected) {
    const std::string name = one.metric;
    const auto near = [&](const char* what, double value) {
      const Figure& figure = printed(kTable, name + what);
      EXPECT_EQ(figure.verdict, Verdict::kReproduced) << to_json(figure);
      ASSERT_TRUE(figure.derived.is_number());
      EXPECT_NEAR(figure.derived.get<double>(), value, 6e-4) << name << what;
    };
    near(", with speculation", one.treatment);
    near(", without", one.control);
    near(", change in percent", one.change);
    for (const char* arm : {"dspark", "control"})
      for (const char* run : {"0", "1", "2"})
        EXPECT_EQ(at(kComparison + "/metrics/" + name + "/" + arm + "_values/" + run).verdict,
                  Verdict::kReproduced);
  }
  EXPECT_EQ(at(kComparison + "/memory/dspark_increment_mib/0").derived, 1587);
  EXPECT_EQ(at(kComparison + "/memory/dspark_increment_mib/1").derived, 2328);
  EXPECT_EQ(at(kComparison + "/memory/dspark_reserve_pass").derived, false);
  for (const char* where : {"/dspark/kv_cache_tokens", "/control/kv_cache_tokens",
                            "/dspark/startup_seconds", "/control/startup_seconds"})
    EXPECT_EQ(at(kComparison + where).verdict, Verdict::kNotDerivable);
  EXPECT_EQ(at(kComparison + "/functional_gate/dspark").derived, "pass");
  EXPECT_EQ(at(kComparison + "/functional_gate/control").derived, "pass");
  EXPECT_EQ(at(kComparison + "/protocol/reasoning_effort").derived, "low");
  EXPECT_EQ(at(kComparison + "/dspark/num_speculative_tokens").derived, 5);
  EXPECT_EQ(at(kComparison + "/dspark/kv_cache_tokens").published, 138459);
  EXPECT_EQ(at(kComparison + "/control/kv_cache_tokens").published, 257515);
}

TEST_F(R16, PromptsWereCachedAndShorterThanCalled) {
  const Json& cached = values("cached-prefill");
  EXPECT_EQ(cached["prompt_tokens"], 2960);
  EXPECT_EQ(cached["cached_tokens"], 2816);
  EXPECT_EQ(cached["rows"], 20);
  EXPECT_EQ(cached["cached_rows"], 18);
  EXPECT_NEAR(cached["cold_ttfo_ms"][0].get<double>(), 828.2, 0.05);
  EXPECT_NEAR(cached["cold_ttfo_ms"][1].get<double>(), 582.2, 0.05);
  EXPECT_NEAR(cached["cold_change_percent"].get<double>(), 42.3, 0.1);
  const Figure& size = at(kComparison + "/protocol/context_tokens");
  EXPECT_EQ(size.verdict, Verdict::kDiffers);
  EXPECT_EQ(size.derived, 2960);
  EXPECT_EQ(values("output-lengths")["dspark_tokens"], Json::parse("[687, 427, 581]"));
  EXPECT_EQ(values("output-lengths")["control_tokens"], Json::parse("[339, 604, 815]"));
}

TEST_F(R16, TheArmsHadDifferentLimits) {
  EXPECT_EQ(values("context-limits")["limits"], Json::parse("[8192, 131072]"));
  EXPECT_EQ(at(kComparison + "/protocol/max_model_len", "max_model_len, dspark runs").verdict,
            Verdict::kDiffers);
  EXPECT_EQ(at(kComparison + "/protocol/max_model_len", "max_model_len, control runs").verdict,
            Verdict::kReproduced);
}

TEST_F(R16, TheExcludedRunIsKept) {
  const std::string file = "capacity-r16-b12x-nospec-low-4k-c1-r3-headroom2048-r2.json";
  const CapacityRun* run = all_.campaign.run(file);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->completed, 2);
  EXPECT_EQ(run->failed, 1);
  EXPECT_NEAR(run->wall_ms.value(), 40229.77, 0.01);
  EXPECT_NEAR(at(file + "#/metrics/throughput_tok_s").derived.get<double>(), 12.279, 6e-4);
  EXPECT_EQ(run->rows.back().error, "stream completed without visible content");
  const Json& excluded = values("excluded-run");
  EXPECT_NEAR(excluded["failed_request_ms"].get<double>(), 31950, 1);
  EXPECT_NEAR(excluded["change_percent"]["throughput_tok_s"][0].get<double>(), 70.471, 1e-3);
  EXPECT_GT(excluded["change_percent"]["throughput_tok_s"][1].get<double>(), 80);
  EXPECT_EQ(values("no-intervals")["signed_rank_least_p"], 0.25);
  EXPECT_EQ(values("no-intervals")["pairs_needed"], 6);
}

TEST_F(R16, LaddersAreReadInBothForms) {
  const std::string cold = "context ladder, cold", warm = "context ladder, warm";
  for (const auto& table : {cold, warm})
    for (const char* rung : {"rung 32,768", "rung 65,536", "rung 128,000"}) {
      const std::string name = rung;
      for (const char* what : {", time to first output, s", ", time to first visible output, s",
                               ", prefill tok/s", ", decode tok/s"})
        EXPECT_EQ(printed(table, name + what).verdict, Verdict::kReproduced) << table << name;
      EXPECT_EQ(printed(table, name + ", context tokens").verdict, Verdict::kDiffers);
    }
  EXPECT_EQ(printed(cold, "rung 32,768, cache state").verdict, Verdict::kReproduced);
  EXPECT_EQ(printed(cold, "rung 65,536, cache state").verdict, Verdict::kDiffers);
  EXPECT_EQ(printed(cold, "rung 65,536, context tokens").derived, 67415);
  const Ladder* old = all_.campaign.ladder("quality-r16-b12x-dspark5-context-ladder-low.json");
  ASSERT_TRUE(old);
  ASSERT_EQ(old->rungs.size(), 3u);
  const double e2e[] = {19.06, 42.59, 81.05};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(*old->rungs[i].row.e2e_ms / 1000, e2e[i], 0.005);
    EXPECT_EQ(old->rungs[i].row.missing, std::vector<std::string>{"ttfo"});
  }
  EXPECT_EQ(old->cap_tokens, 126464);
  EXPECT_EQ(old->rungs[1].chars_per_token, 4.125);
  // The percentiles that the old form kept determine the stamps that it dropped.
  const Json& ttfo = values("incomplete-rows")["recovered_ttfo_ms"];
  EXPECT_NEAR(ttfo[0].get<double>(), 13826.73, 0.01);
  EXPECT_NEAR(ttfo[1].get<double>(), 35610.34, 0.01);
  EXPECT_NEAR(ttfo[2].get<double>(), 75390.50, 0.01);
}

TEST_F(R16, HighEffortNeverReachedThePrompt) {
  const Json& effort = values("effort-fingerprint");
  EXPECT_EQ(effort["smoke_prompt_tokens"], (Json{{"low", 20}, {"high", 20}, {"max", 99}}));
  EXPECT_EQ(effort["verdicts"]["low"], "applied");
  EXPECT_EQ(effort["verdicts"]["high"], "not applied (the prompt is that of the lowest effort)");
  EXPECT_EQ(effort["verdicts"]["max"], "has another effort's prompt (that of high)");
  for (const char* file :
       {"preflight-r16-b12x-dspark5-128k-low.json", "preflight-r16-b12x-dspark5-128k-high.json",
        "preflight-r16-b12x-dspark5-128k-max.json", "preflight-r16-b12x-nospec-128k-low.json"})
    for (const char* what : {", checks passed", ", parallel tool calls"})
      EXPECT_EQ(printed("functional checks", std::string(file) + what).verdict,
                Verdict::kReproduced)
          << file << what;
}

TEST_F(R16, StoredAnswersAreGradedAgain) {
  EXPECT_EQ(printed("quality suite", "attempts passed").derived, "27/27");
  const Json& score = values("score-strength");
  EXPECT_EQ(score["items"], 9);
  EXPECT_EQ(score["completion_tokens"], Json::parse("[60, 3229]"));
  EXPECT_NEAR(score["lower_bound_items"].get<double>(), 0.664, 0.001);
}

TEST_F(R16, HardwareAndCounters) {
  for (int segment = 1; segment <= 3; ++segment)
    for (int card = 0; card < 2; ++card)
      for (const char* what : {", least free MiB", ", highest power, W"})
        EXPECT_EQ(
            printed("memory and power during the ladder",
                    "segment " + std::to_string(segment) + ", card " + std::to_string(card) + what)
                .verdict,
            Verdict::kReproduced);
  const Json& interval = values("sampling-interval")["interval_ms"];
  EXPECT_NEAR(interval[0].get<double>(), 312.9, 0.05);
  EXPECT_NEAR(interval[1].get<double>(), 314.8, 0.05);
  EXPECT_NEAR(interval[2].get<double>(), 311.5, 0.05);
  EXPECT_EQ(values("memory")["gap_mib"], 448);
  const std::string counters = "dspark-r16-b12x-k5-cumulative-after-context.json#";
  EXPECT_NEAR(at(counters + "/derived/accepted_token_fraction").derived.get<double>(), 0.550963,
              5e-7);
  EXPECT_NEAR(at(counters + "/derived/accepted_tokens_per_draft").derived.get<double>(), 2.754813,
              5e-7);
  EXPECT_EQ(at(counters + "/counters/draft_tokens").verdict, Verdict::kReproduced);
  EXPECT_EQ(at(counters + "/counters/accepted_tokens").verdict, Verdict::kReproduced);
  EXPECT_EQ(at(counters + "/scope/chat_completion_requests_2xx").derived, 37);
}

TEST_F(R16, TheDocumentIsWhatTheCommandMakes) {
  const auto committed =
      base::read_file(base::join_path(ANVIL_SOURCE_DIR, "docs/r16-reanalysis.md"));
  ASSERT_TRUE(committed) << base::to_string(committed.error());
  EXPECT_TRUE(markdown(all_, "anvil evidence import r16-evidence -o r16-reanalysis.md") ==
              *committed)
      << "make it again: anvil evidence import DIR -o docs/r16-reanalysis.md";
}

}  // namespace
}  // namespace anvil::evidence::imported
