#include "qualify/fingerprint.h"

#include <gtest/gtest.h>

namespace anvil::qualify {
namespace {

EffortCount counted(std::string effort, int64_t tokens, std::optional<int64_t> declared = {}) {
  EffortCount count;
  count.effort = std::move(effort);
  count.prompt_tokens = tokens;
  count.declared = declared;
  return count;
}

Json judge(std::vector<EffortCount> efforts) {
  FingerprintInput input;
  input.method = "usage";
  input.efforts = std::move(efforts);
  input.repeat = input.efforts.empty() ? std::nullopt : input.efforts[0].prompt_tokens;
  input.longer = 40;
  return judge_fingerprint(input);
}

// The published run whose two upper efforts were mis-encoded by its engine.
TEST(Fingerprint, FindsTheEffortThatIsNotAppliedAndTheOneThatCarriesItsPrefix) {
  const Json verdict =
      judge({counted("low", 20, 0), counted("high", 20, 79), counted("max", 99, 92)});
  EXPECT_EQ(verdict["verdict"], "mismatch");
  EXPECT_EQ(verdict["explanation"], "`high` not applied; `max` carries the high prefix");
  EXPECT_EQ(verdict["efforts"][0]["verdict"], "match");
  EXPECT_EQ(verdict["efforts"][1]["verdict"], "mismatch");
  EXPECT_EQ(verdict["efforts"][2]["delta"], 79);
}

TEST(Fingerprint, MatchesAFixedRuntime) {
  const Json verdict =
      judge({counted("low", 20, 0), counted("high", 99, 79), counted("max", 112, 92)});
  EXPECT_EQ(verdict["verdict"], "match");
  EXPECT_EQ(verdict["explanation"], "every declared delta is seen");
}

TEST(Fingerprint, NamesAnyOtherDelta) {
  EXPECT_EQ(judge({counted("low", 20, 0), counted("high", 55, 79)})["explanation"],
            "`high` adds 35 tokens, 79 declared");
}

TEST(Fingerprint, WithoutEffortsItIsStable) {
  EXPECT_EQ(judge({counted("", 7)})["verdict"], "stable");
  EXPECT_EQ(judge({counted("low", 7)})["verdict"], "stable");
}

TEST(Fingerprint, WithoutDeclarationItSaysWhatItSaw) {
  const Json moved = judge({counted("low", 7), counted("high", 20)});
  EXPECT_EQ(moved["verdict"], "not declared");
  EXPECT_EQ(moved["explanation"], "no deltas are declared; seen: `low` +0, `high` +13");
  EXPECT_EQ(judge({counted("low", 7), counted("high", 7)})["explanation"],
            "no deltas are declared, and no effort changes the prompt");
}

TEST(Fingerprint, ACounterThatIsUnstableOrStuckProvesNothing) {
  FingerprintInput input;
  input.efforts = {counted("", 7)};
  input.repeat = 9;
  input.longer = 40;
  EXPECT_EQ(judge_fingerprint(input)["verdict"], "mismatch");
  EXPECT_EQ(judge_fingerprint(input)["stable"], false);
  input.repeat = 7;
  input.longer = 7;
  EXPECT_EQ(judge_fingerprint(input)["explanation"], "the count does not grow with the text");
  input.longer.reset();
  EXPECT_EQ(judge_fingerprint(input)["verdict"], "mismatch");
}

TEST(Fingerprint, ARefusedEffortIsAMismatch) {
  EffortCount refused;
  refused.effort = "max";
  refused.declared = 92;
  refused.refused = true;
  refused.problem = "http_error: bad value";
  const Json verdict = judge({counted("low", 20, 0), refused});
  EXPECT_EQ(verdict["verdict"], "mismatch");
  EXPECT_EQ(verdict["explanation"], "`max` refused: http_error: bad value");
}

TEST(Fingerprint, AnEngineThatIsGoneIsNotMeasured) {
  EffortCount gone;
  gone.problem = "connect_failed: refused";
  EXPECT_EQ(judge({gone})["verdict"], "not measured");
  EXPECT_EQ(judge({gone})["explanation"], "the prompt not counted: connect_failed: refused");
}

TEST(Fingerprint, NoCountsAreNotMeasured) {
  EXPECT_EQ(judge({EffortCount{}})["verdict"], "not measured");
  EXPECT_EQ(judge({})["verdict"], "not measured");
}

TEST(Fingerprint, SaysWhereTheRenderEndpointDiffers) {
  EffortCount count = counted("low", 20);
  count.rendered = 18;
  EXPECT_NE(judge({count})["explanation"].get<std::string>().find("render endpoint counts 18"),
            std::string::npos);
}

}  // namespace
}  // namespace anvil::qualify
