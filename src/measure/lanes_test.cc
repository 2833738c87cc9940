#include "measure/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace anvil::measure {
namespace {

using evidence::Purpose;

// One token per byte group that spaces separate, plus a template of 8.
Result<int64_t> count(const std::string& text) {
  return 8 + std::count_if(text.begin(), text.end(), [](char c) { return c == ' ' || c == '\n'; });
}

LaneContext context() {
  LaneContext out;
  out.model = "m";
  out.seed = 11;
  out.salt = "run-1";
  return out;
}

std::string prompt_of(const Attempt& attempt) {
  const Json body = *base::parse_json(attempt.body, "body");
  return body.contains("prompt") ? body["prompt"].get<std::string>()
                                 : body["messages"][0]["content"].get<std::string>();
}

LaneAttempts build(const LanePlan& lane, const LaneContext& in = context()) {
  PromptBuilder prompts(count);
  auto built = build_lane(lane, in, prompts);
  EXPECT_TRUE(built) << base::to_string(built.error());
  return built ? std::move(*built) : LaneAttempts{};
}

TEST(LanePlan, ReadsASuiteLane) {
  const auto lane = lane_plan(Json{{"id", "decode-4k"},
                                   {"prompt_tokens", 4096},
                                   {"output_tokens", 256},
                                   {"concurrency", 8},
                                   {"requests", 64},
                                   {"warmup", 4},
                                   {"cache", "prefix"},
                                   {"fixed_output", false},
                                   {"api", "completions"},
                                   {"stream", false}});
  ASSERT_TRUE(lane) << base::to_string(lane.error());
  EXPECT_EQ(lane->id, "decode-4k");
  EXPECT_EQ(lane->prompt_tokens, 4096);
  EXPECT_EQ(lane->output_tokens, 256);
  EXPECT_EQ(lane->concurrency, 8);
  EXPECT_EQ(lane->requests, 64);
  EXPECT_EQ(lane->warmup, 4);
  EXPECT_EQ(lane->cache, "prefix");
  EXPECT_FALSE(lane->fixed_output);
  EXPECT_EQ(lane->api, wire::Api::kCompletions);
  EXPECT_FALSE(lane->stream);
}

TEST(LanePlan, NamesLaneAndKeyOfAWrongValue) {
  const struct {
    Json lane;
    const char* says;
  } cases[] = {
      {Json::array(), "must be a table"},
      {Json::object(), "id must be given"},
      {{{"id", "a"}, {"prompt_tokens", 0}}, "lane \"a\": prompt_tokens"},
      {{{"id", "a"}, {"requests", "9"}}, "requests must be an integer"},
      {{{"id", "a"}, {"concurrency", 1.5}}, "concurrency must be an integer"},
      {{{"id", "a"}, {"warmup", -1}}, "warmup must be an integer from 0"},
      {{{"id", "a"}, {"cache", "warm"}}, "\"cold\", \"prefix\" or \"replay\""},
      {{{"id", "a"}, {"api", "soap"}}, "api must be"},
      {{{"id", "a"}, {"stream", 1}}, "stream must be true or false"},
  };
  for (const auto& c : cases) {
    const auto lane = lane_plan(c.lane);
    ASSERT_FALSE(lane) << c.says;
    EXPECT_NE(lane.error().detail.find(c.says), std::string::npos) << lane.error().detail;
  }
}

TEST(BuildLane, ColdPromptsShareNoBeginning) {
  LanePlan lane;
  lane.id = "cold";
  lane.prompt_tokens = 300;
  lane.requests = 6;
  lane.warmup = 2;
  lane.concurrency = 3;
  const LaneAttempts built = build(lane);
  ASSERT_EQ(built.unmeasured.size(), 2u);
  ASSERT_EQ(built.measured.size(), 6u);
  std::set<std::string> beginnings;
  for (const auto* list : {&built.unmeasured, &built.measured}) {
    for (const Attempt& attempt : *list) {
      const std::string prompt = prompt_of(attempt);
      beginnings.insert(prompt.substr(0, 12));
      EXPECT_NEAR(static_cast<double>(*count(prompt)), 300, 2);
    }
  }
  EXPECT_EQ(beginnings.size(), 8u);
  const evidence::RequestRow& row = built.measured[4].row;
  EXPECT_EQ(row.purpose, Purpose::kLane);
  EXPECT_EQ(row.lane, "cold");
  EXPECT_EQ(row.item, "request-4");
  EXPECT_EQ(row.cache_state, "cold");
  EXPECT_EQ(row.concurrency, 3);
  EXPECT_EQ(row.expect, (Json{{"prompt_tokens", 300}, {"output_tokens", 128}}));
  EXPECT_EQ(built.unmeasured[1].row.purpose, Purpose::kWarmup);
  EXPECT_EQ(built.unmeasured[1].row.item, "warmup-1");
  EXPECT_EQ(built.unmeasured[1].row.cache_state, "");
  EXPECT_GE(built.counter_calls, 8);
}

TEST(BuildLane, PrefixPromptsShareWhatWasPrimed) {
  LanePlan lane;
  lane.id = "prefix";
  lane.prompt_tokens = 1000;
  lane.requests = 4;
  lane.warmup = 1;
  lane.cache = "prefix";
  const LaneAttempts built = build(lane);
  ASSERT_EQ(built.unmeasured.size(), 2u);
  EXPECT_EQ(built.unmeasured.back().row.item, "prime");
  const std::string primed = prompt_of(built.unmeasured.back());
  const size_t shared = primed.size() * 85 / 100;
  std::set<std::string> prompts;
  for (const Attempt& attempt : built.measured) {
    const std::string prompt = prompt_of(attempt);
    EXPECT_EQ(prompt.substr(0, shared), primed.substr(0, shared));
    EXPECT_NEAR(static_cast<double>(*count(prompt)), 1000, 2);
    EXPECT_EQ(attempt.row.cache_state, "prefix");
    prompts.insert(prompt);
  }
  EXPECT_EQ(prompts.size(), 4u);
  EXPECT_NE(prompt_of(built.unmeasured[0]).substr(0, 12), primed.substr(0, 12))
      << "the warm-up must not prime the prefix";
}

TEST(BuildLane, BodiesSayWhatTheLaneMeans) {
  LanePlan lane;
  lane.id = "x";
  lane.prompt_tokens = 200;
  lane.output_tokens = 32;
  lane.requests = 1;
  lane.warmup = 0;
  LaneContext in = context();
  in.effort = "high";
  in.extra = {{"timings_per_token", true}};
  in.cold_extra = {{"cache_prompt", false}};
  const Json fixed = *base::parse_json(build(lane, in).measured[0].body, "body");
  EXPECT_EQ(fixed["model"], "m");
  EXPECT_EQ(fixed["max_tokens"], 32);
  EXPECT_EQ(fixed["min_tokens"], 32);
  EXPECT_EQ(fixed["ignore_eos"], true);
  EXPECT_EQ(fixed["stream"], true);
  EXPECT_EQ(fixed["stream_options"]["include_usage"], true);
  EXPECT_EQ(fixed["temperature"], 0);
  EXPECT_EQ(fixed["timings_per_token"], true);
  EXPECT_EQ(fixed["cache_prompt"], false);
  EXPECT_EQ(fixed["reasoning_effort"], "high");
  EXPECT_TRUE(fixed.contains("messages"));

  lane.fixed_output = false;
  lane.cache = "prefix";
  lane.api = wire::Api::kCompletions;
  lane.stream = false;
  const LaneAttempts natural = build(lane, in);
  const Json body = *base::parse_json(natural.measured[0].body, "body");
  EXPECT_FALSE(body.contains("min_tokens"));
  EXPECT_FALSE(body.contains("cache_prompt"));
  EXPECT_FALSE(body.value("ignore_eos", false));
  EXPECT_FALSE(body.value("stream", false));
  EXPECT_TRUE(body.contains("prompt"));
  EXPECT_FALSE(natural.measured[0].row.stream);
  EXPECT_EQ(natural.measured[0].row.expect, (Json{{"prompt_tokens", 200}}));
}

TEST(BuildLane, IsDeterministicAndSaltedOnlyInItsNonces) {
  LanePlan lane;
  lane.id = "d";
  lane.prompt_tokens = 250;
  lane.requests = 3;
  const LaneAttempts a = build(lane), b = build(lane);
  LaneContext other = context();
  other.salt = "run-2";
  const LaneAttempts salted = build(lane, other);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(a.measured[i].body, b.measured[i].body);
    EXPECT_NE(a.measured[i].body, salted.measured[i].body);
    EXPECT_EQ(prompt_of(a.measured[i]).substr(12), prompt_of(salted.measured[i]).substr(12));
  }
}

TEST(BuildLane, SaysWhichPromptCouldNotBeMade) {
  LanePlan lane;
  lane.id = "tiny";
  lane.prompt_tokens = 4;
  PromptBuilder prompts(count);
  const auto built = build_lane(lane, context(), prompts);
  ASSERT_FALSE(built);
  EXPECT_NE(built.error().detail.find("lane \"tiny\": warmup-0: a prompt of 4 tokens"),
            std::string::npos)
      << built.error().detail;
}

}  // namespace
}  // namespace anvil::measure
