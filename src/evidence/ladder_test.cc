#include <gtest/gtest.h>

#include "evidence/derive_parts.h"
#include "evidence/testing/synthetic_run.h"

namespace anvil::evidence {
namespace {

constexpr int64_t kMs = 1'000'000;
const Json kPlan{{"ladder",
                  {{"targets", {1000, 4000}},
                   {"cached", true},
                   {"tolerance_tokens", 2},
                   {"tolerance_percent", 0.1}}}};

RequestRow rung_row(int64_t target, const std::string& state, int64_t prompt,
                    std::optional<int64_t> cached, const std::string& answer = "K7-Q2-ZZ") {
  RequestRow row = testing::synthetic_row(
      {.ttfo = 500 * kMs, .chunks = 3, .prompt_tokens = prompt, .cached_tokens = cached});
  row.purpose = Purpose::kLadder;
  row.lane = "ladder-" + std::to_string(target);
  row.item = row.cache_state = state;
  row.expect = Json{{"target", target}, {"needles", {{{"depth", 0.5}, {"code", "K7-Q2-ZZ"}}}}};
  row.answer.content = answer;
  return row;
}

Json derive_rungs(const std::vector<RequestRow>& rows, const Json& plan = kPlan) {
  Ladder ladder(plan, nullptr);
  for (const RequestRow& row : rows)
    row.purpose == Purpose::kProbe ? ladder.add_probe(row) : ladder.add(row);
  return ladder.finish();
}

TEST(Needle, Grades) {
  const struct {
    const char* code;
    const char* answer;
    double grade;
  } cases[] = {
      {"K7-Q2-ZZ", "the code is K7-Q2-ZZ.", 1},
      {"K7-Q2-ZZ", "K7 Q2 ZZ", 0.75},
      {"K7-Q2-ZZ", "k7q2zz", 0.75},
      {"K7-Q2-ZZ", "**K7** - Q2 / ZZ", 0.5},  // too much between K7 and Q2 for one code
      {"K7-Q2-ZZ", "xK7Q2ZZ", 0},             // a piece of a longer word
      {"K7-Q2-ZZ", "K7Q2ZZ9", 0},
      {"K7-Q2-ZZ", "Q2 and then ZZ", 0.5},
      {"K7-Q2-ZZ", "only ZZ", 0},  // one part of three
      {"K7-Q2", "Q2", 0.5},
      {"ABC", "abc", 0.75},
      {"ABC", "ABD", 0},
      {"K7-Q2-ZZ", "", 0},
      {"", "anything", 0},
      {"--", "-", 0},
      {"428193", "428 193", 0.75},
      {"428193", "428194", 0},
  };
  for (const auto& one : cases)
    EXPECT_EQ(grade_needle(one.code, one.answer), one.grade) << one.code << " in " << one.answer;
}

TEST(LadderRungs, AcceptsWhatIsProven) {
  RequestRow probe = testing::synthetic_row({.chunks = 1});
  probe.purpose = Purpose::kProbe;
  probe.lane = "ladder-1000";
  const Json out =
      derive_rungs({rung_row(1000, "cold", 1001, 0), rung_row(1000, "prefix", 1001, 990), probe});
  ASSERT_EQ(out["rungs"].size(), 4u);
  const Json& cold = out["rungs"][0];
  EXPECT_EQ(cold["state"], "cold");
  EXPECT_EQ(cold["accepted"], true);
  EXPECT_EQ(cold["deviation_tokens"], 1);
  EXPECT_EQ(cold["ttfo_ms"], 500.0);
  EXPECT_EQ(cold["effective_prefill_tok_s"], 2002.0);
  EXPECT_EQ(cold["needles"][0]["grade"], 1.0);
  EXPECT_EQ(cold["retrieval"], 1.0);
  EXPECT_EQ(cold["healthy"], true);
  const Json& prefix = out["rungs"][1];
  EXPECT_EQ(prefix["cached_tokens"], 990);
  EXPECT_EQ(prefix["computed_prefill_tok_s"], 22.0);
  EXPECT_EQ(out["rungs"][2]["refused"], "not run");
  EXPECT_EQ(out["largest_complete"], 1000);
  EXPECT_EQ(out["largest_retrieved"], 1000);
}

TEST(LadderRungs, Refusals) {
  RequestRow failed = rung_row(1000, "cold", 1000, 0);
  failed.outcome = Outcome::kTimeout;
  RequestRow uncounted = rung_row(1000, "cold", 1000, 0);
  uncounted.answer.usage.prompt.reset();
  const struct {
    RequestRow row;
    const char* why;
  } cases[] = {
      {rung_row(1000, "cold", 1000, 1), "declared cold, and 1 prompt tokens came from the cache"},
      {rung_row(1000, "prefix", 1000, 0),
       "declared prefix-cached, and no prompt token came from the cache"},
      {rung_row(1000, "cold", 1000, std::nullopt),
       "the engine reports no cached tokens, so the cache state is unproven"},
      {rung_row(1000, "cold", 1003, 0), "the prompt has +3 tokens, 2 are allowed"},
      {rung_row(1000, "cold", 900, 0), "the prompt has -100 tokens, 2 are allowed"},
      {rung_row(4000, "cold", 4005, 0), "the prompt has +5 tokens, 4 are allowed"},
      {failed, "1 of 1 requests failed: timeout"},
      {uncounted, "the engine reports no prompt tokens"},
  };
  for (const auto& one : cases) {
    const Json out = derive_rungs({one.row}, nullptr);
    ASSERT_EQ(out["rungs"].size(), 1u);
    EXPECT_EQ(out["rungs"][0]["accepted"], false);
    EXPECT_EQ(out["rungs"][0]["refused"], one.why);
    EXPECT_TRUE(out["rungs"][0]["ttfo_ms"].is_null()) << one.why;
    EXPECT_TRUE(out["largest_complete"].is_null());
  }
}

TEST(LadderRungs, UnhealthyOrUnretrievedTargetsDoNotCount) {
  RequestRow probe = testing::synthetic_row({.chunks = 1});
  probe.purpose = Purpose::kProbe;
  probe.lane = "ladder-4000";
  probe.outcome = Outcome::kConnectFailed;
  const Json plan{{"ladder", {{"targets", {1000, 4000}}, {"cached", false}}}};
  const Json out = derive_rungs(
      {rung_row(1000, "cold", 1000, 0, "nothing"), rung_row(4000, "cold", 4000, 0), probe}, plan);
  EXPECT_EQ(out["rungs"][1]["healthy"], false);
  EXPECT_EQ(out["largest_complete"], 1000);
  EXPECT_TRUE(out["largest_retrieved"].is_null());
}

TEST(LadderRungs, ASingleCodeAndAProofThatIsNotDemanded) {
  RequestRow row = rung_row(0, "cold", 1000, std::nullopt);
  row.expect = Json{{"code", "K7-Q2-ZZ"}};
  row.lane = "rung-1000";
  row.item = "0.9";
  const Json out =
      derive_rungs({row}, Json{{"ladder", {{"targets", {1000}}, {"cache_proof", "none"}}}});
  ASSERT_EQ(out["rungs"].size(), 1u);
  EXPECT_EQ(out["rungs"][0]["accepted"], true);
  EXPECT_EQ(out["rungs"][0]["needles"][0]["depth"], 0.9);
}

TEST(DeriveDocuments, HardwareExtremesPerCard) {
  Hardware hardware;
  const auto sample = [](int64_t available, Json a, Json b) {
    return Json{{"host", {{"mem_available", available}}},
                {"engine", {{"rss", available / 2}, {"cpu_ns", 1'500'000'000}}},
                {"gpus", {a, b}}};
  };
  constexpr int64_t kGib = int64_t{1} << 30;
  hardware.add(sample(8 * kGib,
                      {{"role", "a"}, {"mem_free", 3 * kGib}, {"power_mw", 250000}, {"temp_c", 60}},
                      {{"index", 1}, {"mem_free", 5 * kGib}}));
  hardware.add(sample(6 * kGib,
                      {{"role", "a"}, {"mem_free", 4 * kGib}, {"power_mw", 300500}, {"temp_c", 58}},
                      {{"index", 1}, {"mem_free", nullptr}}));
  const Json out = hardware.finish();
  EXPECT_EQ(out["host"]["min_available_gib"], 6.0);
  EXPECT_EQ(out["engine"]["peak_rss_gib"], 4.0);
  EXPECT_EQ(out["engine"]["cpu_s"], 1.5);
  ASSERT_EQ(out["gpus"].size(), 2u);
  EXPECT_EQ(out["gpus"][0]["min_free_gib"], 3.0);
  EXPECT_EQ(out["gpus"][0]["peak_power_w"], 300.5);
  EXPECT_EQ(out["gpus"][0]["max_temp_c"], 60.0);
  EXPECT_EQ(out["gpus"][1]["min_free_gib"], 5.0);
  EXPECT_TRUE(out["gpus"][1]["peak_power_w"].is_null());
  EXPECT_TRUE(Hardware().finish()["host"]["min_available_gib"].is_null());
}

TEST(DeriveDocuments, StartupStopAndWallClock) {
  const Json launch{{"began_ns", 1'000'000'000},
                    {"ready_ns", 4'000'000'000},
                    {"phases",
                     {{{"name", "weights"}, {"at_ns", 1'500'000'000}},
                      {{"name", "kv"}, {"at_ns", 3'000'000'000}}}},
                    {"stop", {{"seconds", 0.5}, {"port_free", true}, {"left", Json::array()}}}};
  EXPECT_EQ(
      derive_startup(launch, {}),
      (Json{{"ready_s", 3.0},
            {"phases",
             {{{"name", "weights"}, {"seconds", 1.5}}, {{"name", "kv"}, {"seconds", 1.0}}}}}));
  EXPECT_EQ(derive_startup(nullptr, {})["ready_s"], nullptr);
  const std::vector<Json> journal{
      Json{{"event", "begin"}, {"step", "launch"}, {"mono_ns", 3'000'000'000}}};
  EXPECT_EQ(derive_startup(Json{{"ready_ns", 4'000'000'000}}, journal)["ready_s"], 1.0);

  EXPECT_EQ(derive_stop(launch),
            (Json{{"clean", true}, {"port_free", true}, {"left", 0}, {"seconds", 0.5}}));
  EXPECT_EQ(derive_stop(Json{{"stop", {{"port_free", false}, {"left", {7}}}}})["clean"], false);
  EXPECT_EQ(derive_stop(Json{{"stop", nullptr}})["clean"], nullptr);

  const auto at = [](int64_t mono, int64_t wall) {
    return Json{{"mono_ns", mono}, {"wall_ns", wall}};
  };
  EXPECT_EQ(derive_wall_clock({}), (Json{{"step_ms", nullptr}}));
  EXPECT_EQ(derive_wall_clock({at(0, 100), at(50, 151)}), (Json{{"step_ms", 0}}));
  EXPECT_EQ(derive_wall_clock({at(0, 0), at(10, -3'600'000'000'000), at(20, 20)}),
            (Json{{"step_ms", -3'600'000}}));
}

TEST(DeriveDocuments, ChecksFingerprintAndIdentity) {
  const Json checks{
      {"checks",
       {{{"id", "a"}, {"verdict", "pass"}},
        {{"id", "a"}, {"effort", "low"}, {"attempt", 1}, {"verdict", "fail"}},
        {{"id", "b"}, {"verdict", "skipped"}},
        {{"id", "c"}, {"verdict", "odd"}}}},
      {"fingerprint",
       {{"verdict", "mismatch"},
        {"efforts",
         {{{"effort", "low"}, {"prompt_tokens", 20}, {"declared", 0}, {"verdict", "match"}},
          {{"effort", "max"},
           {"prompt_tokens", 99},
           {"declared", 92},
           {"verdict", "mismatch"}}}}}}};
  const Json out = derive_checks(checks);
  EXPECT_EQ(out["passed"], 1);
  EXPECT_EQ(out["failed"], 2);
  EXPECT_EQ(out["skipped"], 1);
  EXPECT_EQ(out["total"], 4);
  EXPECT_EQ(
      out["items"][1],
      (Json{
          {"id", "a"}, {"effort", "low"}, {"attempt", 1}, {"passed", false}, {"verdict", "fail"}}));
  EXPECT_TRUE(out["items"][2]["passed"].is_null());
  EXPECT_EQ(out["by_id"]["a"], (Json{{"passed", 1}, {"failed", 1}, {"skipped", 0}}));
  const Json fingerprint = derive_fingerprint(checks);
  EXPECT_EQ(fingerprint["efforts"][1]["delta"], 79);
  EXPECT_EQ(fingerprint["verdict"], "mismatch");
  EXPECT_EQ(derive_checks("nonsense")["total"], 0);
  EXPECT_TRUE(derive_fingerprint(nullptr)["verdict"].is_null());

  const Json identity{{"fields",
                       {{{"field", "x"}, {"verdict", "match"}},
                        {{"field", "y"}, {"verdict", "mismatch"}},
                        {{"field", "z"}, {"verdict", "not observable"}}}}};
  EXPECT_EQ(derive_identity(identity)["mismatch"], 1);
  EXPECT_EQ(derive_identity(identity)["not_observable"], 1);
  EXPECT_TRUE(derive_identity(nullptr)["mismatch"].is_null());
}

}  // namespace
}  // namespace anvil::evidence
