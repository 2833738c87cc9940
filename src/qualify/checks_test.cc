#include "qualify/checks.h"

#include <gtest/gtest.h>

#include <memory>

#include "qualify/checks_fake_engine.h"
#include "qualify/fingerprint.h"
#include "qualify/ladder.h"

namespace anvil::qualify {
namespace {

using evidence::Outcome;
using evidence::Purpose;

class ChecksTest : public ::testing::Test {
 protected:
  void start(FakeEngine::Faults faults = {}, const char* interface = "llama.cpp") {
    engine_ = std::make_unique<FakeEngine>(faults);
    auto table = engine::InterfaceTable::load(interface);
    ASSERT_TRUE(table.has_value()) << base::to_string(table.error());
    table_ = std::make_unique<engine::InterfaceTable>(std::move(*table));
    client_ =
        std::make_unique<measure::Client>(measure::Endpoint{engine_->url(), ""}, measure::Limits{});
  }
  CheckContext context() {
    return {.client = *client_,
            .endpoint = {engine_->url(), ""},
            .cancel = cancel_,
            .record = [this](evidence::RequestRow row) -> Result<int64_t> {
              row.seq = static_cast<int64_t>(rows_.size());
              rows_.push_back(std::move(row));
              return rows_.back().seq;
            },
            .sandbox = sandbox_,
            .model = FakeEngine::model(),
            .effort = "",
            .engine = "llama.cpp",
            .table = *table_,
            .salt = "run-1",
            .context_tokens = FakeEngine::kContext,
            .max_tokens = 64,
            .seed = 7};
  }
  std::map<std::string, CheckResult> run(CheckPlan plan = {}) {
    auto results = run_checks(context(), plan);
    EXPECT_TRUE(results.has_value());
    std::map<std::string, CheckResult> by_id;
    if (results)
      for (auto& result : *results) by_id[result.id] = std::move(result);
    return by_id;
  }

  base::Cancel cancel_;
  const Sandbox sandbox_ = Sandbox::detect();
  std::unique_ptr<FakeEngine> engine_;
  std::unique_ptr<engine::InterfaceTable> table_;
  std::unique_ptr<measure::Client> client_;
  std::vector<evidence::RequestRow> rows_;
};

TEST_F(ChecksTest, AGoodEnginePassesEveryCheck) {
  start();
  const auto results = run();
  EXPECT_EQ(results.size(), check_registry().size());
  for (const auto& [id, result] : results) {
    EXPECT_EQ(result.verdict, CheckVerdict::kPass) << id << ": " << result.detail;
    EXPECT_FALSE(result.rows.empty()) << id;
    EXPECT_FALSE(result.proves.empty()) << id;
    EXPECT_TRUE(result.request.is_object()) << id;
    EXPECT_TRUE(result.answer.contains("content")) << id;
  }
  for (const auto& row : rows_) {
    EXPECT_EQ(row.purpose, Purpose::kCheck);
    EXPECT_FALSE(row.item.empty());
    EXPECT_EQ(row.request_body.empty(), row.item == "context-overflow") << row.item;
  }
}

TEST_F(ChecksTest, AModelThatKnowsNothingFailsWhatItMust) {
  FakeEngine::Faults faults;
  faults.forgets = true;
  start(faults);
  const auto results = run();
  for (const char* id : {"smoke", "json", "tools", "tools-stream", "tool-result", "recall",
                         "responses", "responses-stream"})
    EXPECT_EQ(results.at(id).verdict, CheckVerdict::kFail) << id;
  for (const char* id :
       {"json-schema", "stream-protocol", "stop", "usage-consistency", "unknown-model"})
    EXPECT_EQ(results.at(id).verdict, CheckVerdict::kPass) << id << results.at(id).detail;
}

TEST_F(ChecksTest, AnEngineOutOfOrderFailsAndIsNeverSkipped) {
  FakeEngine::Faults faults;
  faults.status = 500;
  start(faults);
  for (const auto& [id, result] : run()) {
    EXPECT_EQ(result.verdict, CheckVerdict::kFail) << id;
    EXPECT_NE(result.detail.find("http_error"), std::string::npos) << id << result.detail;
  }
}

TEST_F(ChecksTest, AnEngineThatIsGoneFailsWithItsClass) {
  start();
  const std::string url = engine_->url();
  engine_.reset();
  CheckContext gone = {.client = *client_,
                       .endpoint = {url, ""},
                       .cancel = cancel_,
                       .record = [](evidence::RequestRow) -> Result<int64_t> { return 0; },
                       .sandbox = sandbox_,
                       .model = "m",
                       .effort = "",
                       .engine = "llama.cpp",
                       .table = *table_,
                       .salt = ""};
  const auto results = run_checks(gone, {.include = {"smoke"}, .efforts = {}, .attempts = 1});
  ASSERT_TRUE(results.has_value());
  EXPECT_EQ((*results)[0].verdict, CheckVerdict::kFail);
  EXPECT_NE((*results)[0].detail.find("connect_failed"), std::string::npos) << (*results)[0].detail;
}

TEST_F(ChecksTest, ASurfaceThatIsNotThereIsSkipped) {
  FakeEngine::Faults faults;
  faults.no_responses = true;
  start(faults);
  const auto results = run({.include = {"responses", "responses-stream", "recall"}, .efforts = {}});
  EXPECT_EQ(results.at("responses").verdict, CheckVerdict::kSkipped);
  EXPECT_EQ(results.at("responses-stream").verdict, CheckVerdict::kSkipped);
  EXPECT_EQ(results.at("recall").verdict, CheckVerdict::kPass);
}

TEST_F(ChecksTest, FaultsOfTheEngineAreFound) {
  FakeEngine::Faults faults;
  faults.drops_done = true;
  faults.answers_any_model = true;
  faults.truncates = true;
  faults.stuck = true;
  start(faults);
  const auto results = run({.include = {"tools-stream", "stream-protocol", "responses-stream",
                                        "unknown-model", "context-overflow"},
                            .efforts = {}});
  EXPECT_NE(results.at("stream-protocol").detail.find("truncated"), std::string::npos);
  EXPECT_EQ(results.at("responses-stream").verdict, CheckVerdict::kFail);
  EXPECT_EQ(results.at("tools-stream").verdict, CheckVerdict::kFail);
  EXPECT_EQ(results.at("unknown-model").verdict, CheckVerdict::kSkipped)
      << "llama.cpp serves one model whatever the name";
  EXPECT_NE(results.at("context-overflow").detail.find("silently truncated"), std::string::npos);
}

TEST_F(ChecksTest, AnEngineThatKeepsRunningAnAbandonedRequestIsFound) {
  FakeEngine::Faults faults;
  faults.stuck = true;
  start(faults);
  const auto results = run({.include = {"cancel"}, .efforts = {}});
  EXPECT_NE(results.at("cancel").detail.find("still ran 1"), std::string::npos)
      << results.at("cancel").detail;
}

TEST_F(ChecksTest, EffortsAndAttemptsMultiply) {
  start();
  const CheckPlan plan{
      .include = {"recall", "unknown-model"}, .efforts = {"low", "high"}, .attempts = 2};
  const auto results = run_checks(context(), plan);
  ASSERT_TRUE(results.has_value());
  EXPECT_EQ(results->size(), 6u);
  EXPECT_EQ(count_results(plan), 6);
  EXPECT_EQ((*results)[0].effort, "low");
  EXPECT_EQ((*results)[1].attempt, 1);
  EXPECT_EQ(results->back().effort, "high");
  EXPECT_EQ(results->back().request["reasoning_effort"], "high");
}

TEST_F(ChecksTest, UnknownIdsAreRefusedWithASuggestion) {
  const auto bad = validate_plan({.include = {"smok"}, .efforts = {}});
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().hint, "did you mean \"smoke\"?");
  EXPECT_FALSE(validate_plan({.include = {}, .efforts = {}, .attempts = 0}).has_value());
}

TEST_F(ChecksTest, CancelAndABrokenRecordEndTheRun) {
  start();
  CheckContext broken = context();
  broken.record = [](evidence::RequestRow) -> Result<int64_t> {
    return fail(Kind::kDiskFull, Side::kHost, "no space");
  };
  const auto results = run_checks(broken, {});
  ASSERT_FALSE(results.has_value());
  EXPECT_EQ(results.error().kind, Kind::kDiskFull);
  cancel_.request();
  const auto cancelled = run_checks(context(), {});
  ASSERT_FALSE(cancelled.has_value());
  EXPECT_EQ(cancelled.error().kind, Kind::kCancelled);
}

TEST_F(ChecksTest, ResultsBecomeTheDocumentOfTheRun) {
  start();
  const Json json = to_json(run({.include = {"smoke"}, .efforts = {}}).at("smoke"));
  for (const char* key : {"id", "effort", "attempt", "verdict", "proves", "detail", "rows",
                          "request", "answer", "evidence"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["verdict"], "pass");
}

// fingerprint

TEST_F(ChecksTest, FingerprintOfAnEngineWithoutEfforts) {
  start({}, "openai");
  const auto verdict = run_fingerprint(context(), {});
  ASSERT_TRUE(verdict.has_value()) << base::to_string(verdict.error());
  EXPECT_EQ((*verdict)["verdict"], "stable");
  EXPECT_EQ((*verdict)["method"], "usage");
  EXPECT_EQ(rows_.size(), 3u);
  for (const auto& row : rows_) EXPECT_EQ(row.purpose, Purpose::kFingerprint);
}

TEST_F(ChecksTest, FingerprintFindsThatNoEffortIsApplied) {
  start({}, "openai");
  FingerprintPlan plan;
  plan.efforts = {"low", "high"};
  plan.declared = {{"low", 0}, {"high", 79}};
  const auto verdict = run_fingerprint(context(), plan);
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ((*verdict)["explanation"], "`high` not applied");
}

// ladder

TEST_F(ChecksTest, LadderClimbsWithExactPromptsAndFindsItsNeedles) {
  start({}, "openai");
  LadderPlan plan;
  plan.targets = {256, 700};
  std::vector<int64_t> told;
  const auto rungs =
      run_ladder(context(), plan, [&](const RungReport& rung) { told.push_back(rung.target); });
  ASSERT_TRUE(rungs.has_value()) << base::to_string(rungs.error());
  EXPECT_EQ(told, plan.targets);
  for (const RungReport& rung : *rungs) {
    EXPECT_EQ(rung.stopped, "");
    EXPECT_TRUE(rung.healthy);
    EXPECT_EQ(rung.method, "usage");
    ASSERT_EQ(rung.rows.size(), 2u);
    const auto& cold = rows_[static_cast<size_t>(rung.rows[0])];
    const auto& prefix = rows_[static_cast<size_t>(rung.rows[1])];
    EXPECT_EQ(cold.purpose, Purpose::kLadder);
    EXPECT_EQ(cold.lane, "ladder-" + std::to_string(rung.target));
    EXPECT_EQ(cold.cache_state, "cold");
    EXPECT_EQ(prefix.cache_state, "prefix");
    EXPECT_LE(std::abs(*cold.answer.usage.prompt - rung.target), 2);
    EXPECT_EQ(cold.answer.usage.cached, 0);
    EXPECT_GT(*prefix.answer.usage.cached, 0);
    ASSERT_EQ(cold.expect["needles"].size(), 3u);
    for (const Json& needle : cold.expect["needles"])
      EXPECT_NE(cold.answer.content.find(needle["code"].get<std::string>()), std::string::npos);
  }
}

TEST_F(ChecksTest, LadderAsksABaseModelThroughCompletions) {
  start({}, "openai");
  const LadderPlan plan = ladder_plan(Json::parse(
      R"({"prompt_style":"plain","ladder":{"targets":[300],"cached":false,"depths":[0.5]}})"));
  const auto rungs = run_ladder(context(), plan);
  ASSERT_TRUE(rungs.has_value());
  ASSERT_EQ((*rungs)[0].rows.size(), 1u) << (*rungs)[0].stopped;
  const auto& row = rows_[static_cast<size_t>((*rungs)[0].rows[0])];
  EXPECT_EQ(row.api, wire::Api::kCompletions);
  EXPECT_EQ(row.expect["needles"].size(), 1u);
}

TEST_F(ChecksTest, LadderStopsAtTheRungThatBreaks) {
  FakeEngine::Faults faults;
  faults.fails_above = 500;
  start(faults, "openai");
  LadderPlan plan;
  plan.targets = {256, 700, 900};
  const auto rungs = run_ladder(context(), plan);
  ASSERT_TRUE(rungs.has_value());
  ASSERT_EQ(rungs->size(), 2u) << "the third rung is not tried";
  EXPECT_EQ((*rungs)[0].stopped, "");
  EXPECT_NE((*rungs)[1].stopped, "");
  EXPECT_TRUE((*rungs)[1].healthy) << "the engine itself survived";
  EXPECT_EQ(rows_.back().purpose, Purpose::kProbe);
}

TEST_F(ChecksTest, LadderPlanReadsTheSuite) {
  const LadderPlan plan = ladder_plan(Json::parse(
      R"({"ladder":{"targets":[900,100],"depths":[0.2],"output_tokens":9,"cached":false,
          "tolerance_tokens":3,"tolerance_percent":0.5}})"));
  EXPECT_EQ(plan.targets, (std::vector<int64_t>{100, 900}));
  EXPECT_EQ(plan.output_tokens, 9);
  EXPECT_FALSE(plan.cached);
  EXPECT_FALSE(plan.plain);
  EXPECT_TRUE(ladder_plan(Json::object()).targets.empty());
}

}  // namespace
}  // namespace anvil::qualify
