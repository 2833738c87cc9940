#include "measure/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/files.h"
#include "base/hash.h"

namespace anvil::measure {
namespace {

using evidence::Purpose;

// Every word, line break and run of digits a token, and a template of 8.
int64_t tokens_of(const std::string& text) {
  return 8 + std::count_if(text.begin(), text.end(), [](char c) { return c == ' ' || c == '\n'; });
}

LaneContext context(const std::string& salt = "run-1") {
  LaneContext out;
  out.model = "m";
  out.seed = 11;
  out.salt = salt;
  return out;
}

LanePlan plan_of(const char* json) {
  const auto plan = lane_plan(Json::parse(json));
  EXPECT_TRUE(plan) << base::to_string(plan.error());
  return plan.value_or(LanePlan());
}

LaneAttempts build(const LanePlan& lane, const LaneContext& in = context(), int* calls = nullptr) {
  PromptBuilder prompts([calls](const std::string& text) -> Result<int64_t> {
    if (calls) ++*calls;
    return tokens_of(text);
  });
  auto built = build_lane(lane, in, prompts);
  EXPECT_TRUE(built) << base::to_string(built.error());
  return built ? std::move(*built) : LaneAttempts();
}

Error refused(const LanePlan& lane) {
  PromptBuilder prompts([](const std::string& text) -> Result<int64_t> { return tokens_of(text); });
  auto built = build_lane(lane, context(), prompts);
  EXPECT_FALSE(built);
  return built ? Error() : built.error();
}

Json messages_of(const Attempt& attempt) {
  return (*base::parse_json(attempt.body, "body"))["messages"];
}

std::string prompt_of(const Attempt& attempt) {
  const Json body = *base::parse_json(attempt.body, "body");
  return body.contains("prompt") ? body["prompt"].get<std::string>()
                                 : body["messages"].back()["content"].get<std::string>();
}

size_t shared(const std::string& a, const std::string& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                             a.begin());
}

// A file that goes away with the test.
class TestFile {
 public:
  explicit TestFile(const std::string& text)
      : path_(testing::TempDir() + "anvil-plan-" + base::random_hex(8)) {
    EXPECT_TRUE(base::write_file_atomic(path_, text));
  }
  ~TestFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(LanePlanLoads, ReadsEveryKey) {
  const LanePlan plan = plan_of(R"({"id":"a","load":"gamma","rate":2,"burstiness":0.5,
      "duration_s":30,"max_outstanding":64,"drain":"cut","drain_s":5,"threads":2,
      "connections":"pool","respect_retry_after":true,
      "prompt_tokens":{"dist":"uniform","min":100,"max":200},
      "objectives":{"ttfo_ms_p90":500,"tpot_ms_p50":20},
      "mix":[{"name":"x","weight":2},{"name":"y","weight":1,"output_tokens":9}]})");
  EXPECT_EQ(plan.load, Load::kGamma);
  EXPECT_EQ(plan.requests, 0) << "the duration says how many";
  EXPECT_EQ(plan.drain_s, 5.0);
  EXPECT_EQ(plan.mix[0].prompt_tokens.max, 200);
  EXPECT_EQ(plan.mix[1].output_tokens, Length(9));
  ASSERT_EQ(plan.objectives.size(), 2u);
  EXPECT_EQ(plan.objectives[1].metric, "ttfo_ms");
  EXPECT_EQ(plan.objectives[1].share, 0.9);
  EXPECT_EQ(plan.objectives[1].limit, 500);
  const LoadOptions options = load_options(plan);
  EXPECT_EQ(options.concurrency, 64);
  EXPECT_EQ(options.threads, 2);
  EXPECT_EQ(options.connections, Connections::kPool);
  EXPECT_TRUE(options.respect_retry_after);
  EXPECT_EQ(load_options(plan_of(R"({"id":"a","concurrency":3})")).concurrency, 3);
  EXPECT_FALSE(plan_of(R"({"id":"a","prompts":"text:x"})").fixed_output);
  EXPECT_EQ(plan_of(R"({"id":"a","load":"trace","trace":"x"})").cache, "replay");
}

TEST(LanePlanLoads, RefusesWhatDoesNotGoTogether) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"id":"a","load":"burst"})", "load must be \"closed\", "},
      {R"({"id":"a","load":"poisson"})", "rate must be given"},
      {R"({"id":"a","load":"steps"})", "steps must be given"},
      {R"({"id":"a","load":"steps","steps":[{"rate":1,"seconds":0}]})", "seconds must be above 0"},
      {R"({"id":"a","load":"trace"})", "trace must be given"},
      {R"({"id":"a","load":"sessions","sessions":3})", "turns must be given"},
      {R"({"id":"a","load":"sessions","sessions":3,"turns":2,"cache":"cold"})", "\"replay\""},
      {R"({"id":"a","prompts":"csv:x"})", "prompts must be"},
      {R"({"id":"a","prompts":"text:x","fixed_output":true})", "must be false"},
      {R"({"id":"a","prompts":"text:x","cache":"prefix"})", "cannot be \"prefix\""},
      {R"({"id":"a","prompt_tokens":{"dist":"x"}})", "prompt_tokens dist must be"},
      {R"({"id":"a","mix":[{"weight":1}]})", "mix: name must be given"},
      {R"({"id":"a","objectives":{"x":1}})", "METRIC_pNN"},
      {R"({"id":"a","connections":"many"})", "connections must be \"reuse\", \"fresh\" or"},
  };
  for (const auto& [json, words] : cases) {
    const auto plan = lane_plan(Json::parse(json));
    ASSERT_FALSE(plan) << json;
    EXPECT_NE(plan.error().detail.find("lane \"a\""), std::string::npos);
    EXPECT_NE(plan.error().detail.find(words), std::string::npos) << plan.error().detail;
  }
}

TEST(BuildPlan, OpenLoopsHaveMomentsAndSaySo) {
  const LaneAttempts built = build(plan_of(R"({"id":"o","load":"poisson","rate":5,"requests":40,
      "prompt_tokens":120,"max_outstanding":9,"warmup":1})"));
  ASSERT_EQ(built.measured.size(), 40u);
  Nanos last = -1;
  for (const Attempt& each : built.measured) {
    ASSERT_TRUE(each.at);
    EXPECT_GT(*each.at, last);
    last = *each.at;
    EXPECT_EQ(each.after, -1);
    EXPECT_EQ(each.row.arrival, "open");
    EXPECT_EQ(each.row.concurrency, 9);
    EXPECT_LE(std::abs(tokens_of(prompt_of(each)) - 120), 2);
  }
  EXPECT_FALSE(built.unmeasured[0].at);
  EXPECT_EQ(built.summary["arrivals"]["count"], 40);
  EXPECT_EQ(built.summary["load"], "poisson");
  EXPECT_EQ(built.summary["making"]["method"], "exact");
  EXPECT_EQ(built.summary["prompt_tokens"]["mean"], 120.0);
  EXPECT_EQ(build(plan_of(R"({"id":"o","load":"constant","rate":5,"duration_s":4,
      "prompt_tokens":120})"))
                .measured.size(),
            20u);
  EXPECT_EQ(build(plan_of(R"({"id":"o","load":"steps","step_process":"constant",
      "prompt_tokens":120,"steps":[{"rate":2,"seconds":5},{"rate":1,"to_rate":3,"seconds":5}]})"))
                .measured.size(),
            20u);
}

TEST(BuildPlan, DigestIsThatOfTheLoadWithoutItsSalt) {
  const LanePlan lane = plan_of(R"({"id":"d","load":"poisson","rate":5,"requests":5,
      "prompt_tokens":120})");
  const LaneAttempts a = build(lane), b = build(lane), salted = build(lane, context("run-2"));
  EXPECT_EQ(a.plan_digest, b.plan_digest);
  EXPECT_EQ(a.plan_digest, salted.plan_digest);
  EXPECT_EQ(a.summary, salted.summary);
  EXPECT_EQ(a.plan_digest.size(), 64u);
  std::set<std::string> bodies;
  for (const auto* built : {&a, &salted})
    for (const auto* list : {&built->unmeasured, &built->measured})
      for (const Attempt& each : *list) bodies.insert(each.body);
  EXPECT_EQ(bodies.size(), 14u) << "salts are of the run and of the attempt";

  LaneContext other = context();
  other.model = "another";
  other.extra = {{"x", 1}};
  EXPECT_EQ(build(lane, other).plan_digest, a.plan_digest);
  EXPECT_NE(build(lane, other).summary["bodies_sha256"], a.summary["bodies_sha256"]);
  other = context();
  other.seed = 12;
  EXPECT_NE(build(lane, other).plan_digest, a.plan_digest);
  for (const char* change :
       {R"({"rate":6})", R"({"requests":6})", R"({"output_tokens":5})", R"({"prompt_tokens":121})",
        R"({"max_outstanding":5})", R"({"stream":false})", R"({"warmup":1})"}) {
    Json changed =
        Json::parse(R"({"id":"d","load":"poisson","rate":5,"requests":5,"prompt_tokens":120})");
    changed.update(Json::parse(change));
    EXPECT_NE(build(*lane_plan(changed)).plan_digest, a.plan_digest) << change;
  }
}

TEST(BuildPlan, LengthsAndMixturesAreExact) {
  const LaneAttempts built = build(plan_of(R"({"id":"m","requests":40,"warmup":0,
      "prompt_tokens":{"dist":"uniform","min":80,"max":300},
      "mix":[{"name":"long","weight":3,"output_tokens":{"dist":"empirical","values":[7,9]}},
             {"name":"short","weight":1,"prompt_tokens":70}]})"));
  std::set<int64_t> lengths, budgets;
  std::map<std::string, int> parts;
  for (const Attempt& each : built.measured) {
    const Json& expect = each.row.expect;
    EXPECT_LE(std::abs(tokens_of(prompt_of(each)) - expect["prompt_tokens"].get<int64_t>()), 2);
    lengths.insert(expect["prompt_tokens"].get<int64_t>());
    budgets.insert(expect["output_tokens"].get<int64_t>());
    ++parts[expect["part"]];
    EXPECT_EQ(expect["part"] == "short", expect["prompt_tokens"] == 70);
  }
  EXPECT_EQ(parts["long"], 30);
  EXPECT_EQ(parts["short"], 10);
  EXPECT_EQ(built.summary["parts"], (Json{{"long", 30}, {"short", 10}}));
  EXPECT_GT(lengths.size(), 15u);
  EXPECT_EQ(budgets, (std::set<int64_t>{7, 9, 128}));
}

TEST(BuildPlan, SessionsChainTurnsAndRepeatTheirHistory) {
  const LanePlan lane = plan_of(R"({"id":"s","load":"sessions","sessions":5,"turns":3,
      "concurrency":2,"prompt_tokens":90,"output_tokens":40,"think_time_s":1.5})");
  const LaneAttempts built = build(lane);
  ASSERT_EQ(built.measured.size(), 15u);
  for (size_t i = 0; i < 15; ++i) {
    const Attempt& each = built.measured[i];
    const int turn = static_cast<int>(i % 3);
    EXPECT_EQ(each.row.turn, turn);
    EXPECT_EQ(each.row.arrival, "session");
    EXPECT_EQ(each.row.item, "session-" + std::to_string(i / 3) + "/turn-" + std::to_string(turn));
    EXPECT_LT(each.after, static_cast<int64_t>(i));
    EXPECT_FALSE(each.at);
    const Json messages = messages_of(each);
    ASSERT_EQ(messages.size(), static_cast<size_t>(2 * turn + 1));
    EXPECT_EQ(each.row.expect.contains("prompt_tokens"), turn == 0);
    if (turn == 0) continue;
    EXPECT_EQ(each.after, static_cast<int64_t>(i) - 1);
    EXPECT_EQ(each.think, 1'500'000'000);
    EXPECT_EQ(messages[1]["role"], "assistant");
    const Json before = messages_of(built.measured[i - 1]);
    for (size_t m = 0; m < before.size(); ++m) EXPECT_EQ(messages[m], before[m]);
  }
  EXPECT_EQ(built.measured[3].after, -1);
  EXPECT_EQ(built.measured[6].after, 2) << "the third session begins when the first has ended";
  EXPECT_EQ(built.measured[6].think, 0);
  EXPECT_EQ(built.summary["sessions"]["think_s"], 15.0);

  const LaneAttempts timed = build(plan_of(R"({"id":"s","load":"sessions","sessions":5,"turns":2,
      "rate":2,"prompt_tokens":90,"think_time_s":2,"think_time_dist":"exponential"})"));
  std::set<Nanos> thinks;
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(timed.measured[i].at.has_value(), i % 2 == 0);
    EXPECT_EQ(timed.measured[i].after, i % 2 == 0 ? -1 : static_cast<int64_t>(i) - 1);
    if (i % 2) thinks.insert(timed.measured[i].think);
  }
  EXPECT_EQ(thinks.size(), 5u);
  EXPECT_EQ(timed.measured[0].row.concurrency, 512);
}

TEST(BuildPlan, PrefixGroupsShareTheirBeginningsAndArePrimedOnce) {
  const LaneAttempts built = build(plan_of(R"({"id":"p","cache":"prefix","prefix_groups":3,
      "prefix_tokens":200,"prompt_tokens":{"dist":"uniform","min":260,"max":300},"requests":12,
      "warmup":1})"));
  ASSERT_EQ(built.unmeasured.size(), 4u);
  EXPECT_EQ(built.unmeasured[1].row.item, "prime-0");
  std::map<std::string, int> groups;
  for (const Attempt& each : built.measured) ++groups[prompt_of(each).substr(0, 12)];
  EXPECT_EQ(groups.size(), 3u);
  for (const auto& [start, times] : groups) EXPECT_EQ(times, 4);
  for (size_t g = 1; g < 4; ++g) {
    const std::string primed = prompt_of(built.unmeasured[g]);
    int like = 0;
    for (const Attempt& each : built.measured) {
      const std::string common = primed.substr(0, shared(primed, prompt_of(each)));
      if (common.size() < 100) continue;
      ++like;
      EXPECT_GE(tokens_of(common), 195);
      EXPECT_LT(common.size(), primed.size());
    }
    EXPECT_EQ(like, 4);
  }
  EXPECT_EQ(built.summary["groups"], 3);
}

TEST(BuildPlan, ReplaySendsEveryPromptOnceBefore) {
  const LaneAttempts built =
      build(plan_of(R"({"id":"r","cache":"replay","requests":3,"warmup":1,"prompt_tokens":90})"));
  ASSERT_EQ(built.unmeasured.size(), 4u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(built.unmeasured[i + 1].body, built.measured[i].body);
    EXPECT_EQ(built.unmeasured[i + 1].row.purpose, Purpose::kWarmup);
  }
  EXPECT_EQ(built.measured[0].row.cache_state, "replay");
}

TEST(BuildPlan, ManyPromptsComeFromAPoolInFewCalls) {
  int calls = 0;
  const LaneAttempts same =
      build(plan_of(R"({"id":"n","requests":300,"prompt_tokens":150})"), context(), &calls);
  EXPECT_LE(calls, 128 * 6);
  EXPECT_EQ(same.summary["making"]["method"], "pool");
  std::set<std::string> prompts, texts;
  for (const Attempt& each : same.measured) {
    const std::string prompt = prompt_of(each);
    EXPECT_LE(std::abs(tokens_of(prompt) - 150), 2);
    prompts.insert(prompt.substr(0, 12));
    texts.insert(prompt.substr(12));
  }
  EXPECT_EQ(prompts.size(), 300u) << "each has a nonce of its own";
  EXPECT_EQ(texts.size(), 128u);

  calls = 0;
  const LaneAttempts many = build(plan_of(R"({"id":"n","requests":500,
      "prompt_tokens":{"dist":"uniform","min":100,"max":600}})"),
                                  context(), &calls);
  EXPECT_LE(calls, 130 * 8);
  for (const Attempt& each : many.measured)
    ASSERT_LE(
        std::abs(tokens_of(prompt_of(each)) - each.row.expect["prompt_tokens"].get<int64_t>()), 2);
  EXPECT_GT(many.summary["making"]["filled_up"], 200);
  EXPECT_EQ(many.plan_digest, build(plan_of(R"({"id":"n","requests":500,
      "prompt_tokens":{"dist":"uniform","min":100,"max":600}})"),
                                    context("other"))
                                  .plan_digest);
}

TEST(BuildPlan, APoolWithPrefixGroupsKeepsLengthAndSharing) {
  const LaneAttempts built = build(plan_of(R"({"id":"p","prefix_groups":4,"prefix_tokens":300,
      "prompt_tokens":400,"requests":250})"));
  std::map<std::string, int> groups;
  for (const Attempt& each : built.measured) {
    ASSERT_LE(std::abs(tokens_of(prompt_of(each)) - 400), 4);
    ++groups[prompt_of(each).substr(0, 12)];
  }
  EXPECT_EQ(groups.size(), 4u);
}

TEST(BuildPlan, ATracesSharingIsReproduced) {
  std::string lines;
  const std::vector<std::pair<int, std::string>> entries = {{1800, "[1,2,3,4]"},
                                                            {1700, "[1,2,3,9]"},
                                                            {1800, "[1,2,3,4]"},
                                                            {1200, "[1,7,8]"},
                                                            {900, "[20,21]"}};
  for (size_t i = 0; i < entries.size(); ++i)
    lines += "{\"timestamp\":" + std::to_string(i * 1000) +
             ",\"input_length\":" + std::to_string(entries[i].first) +
             ",\"output_length\":" + std::to_string(10 + i) + ",\"hash_ids\":" + entries[i].second +
             "}\n";
  const TestFile file(lines);
  Json lane{
      {"id", "t"}, {"load", "trace"}, {"trace", file.path()}, {"trace_scale", 0.5}, {"warmup", 1}};
  const LaneAttempts built = build(*lane_plan(lane));
  ASSERT_EQ(built.measured.size(), 5u);
  std::vector<std::string> prompts;
  for (size_t i = 0; i < 5; ++i) {
    prompts.push_back(prompt_of(built.measured[i]));
    EXPECT_LE(std::abs(tokens_of(prompts[i]) - entries[i].first), 2) << i;
    EXPECT_EQ(built.measured[i].at, static_cast<Nanos>(i) * kSecond / 2);
    EXPECT_EQ(built.measured[i].row.expect["output_tokens"], 10 + i);
    EXPECT_EQ(built.measured[i].row.cache_state, "replay");
  }
  const auto common = [&](size_t a, size_t b) {
    return tokens_of(prompts[a].substr(0, shared(prompts[a], prompts[b])));
  };
  EXPECT_EQ(prompts[0], prompts[2]) << "the same ids to the end are the same text";
  EXPECT_GT(common(0, 1), 3 * 440);
  EXPECT_LT(common(0, 1), 3 * 512 + 20);
  EXPECT_GT(common(0, 3), 440);
  EXPECT_LT(common(0, 3), 512 + 20);
  EXPECT_LT(common(0, 4), 20);
  EXPECT_EQ(built.summary["trace"]["sha256"], base::sha256(lines));
  EXPECT_GT(built.summary["trace"]["shared_tokens"], 3000);
  EXPECT_EQ(built.plan_digest, build(*lane_plan(lane), context("run-2")).plan_digest);
  EXPECT_NE(prompts[4].substr(0, 12),
            prompt_of(build(*lane_plan(lane), context("run-2")).measured[4]).substr(0, 12));

  lane["requests"] = 2;
  EXPECT_EQ(build(*lane_plan(lane)).measured.size(), 2u);
  lane.erase("requests");
  lane["duration_s"] = 1.0;
  EXPECT_EQ(build(*lane_plan(lane)).measured.size(), 2u);
  lane["cache"] = "cold";
  const LaneAttempts cold = build(*lane_plan(lane));
  EXPECT_LT(shared(prompt_of(cold.measured[0]), prompt_of(cold.measured[1])), 12u);
}

TEST(BuildPlan, DatasetsAreSampledWithoutRepetition) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "prompt number " + std::to_string(i) + "\n";
  const TestFile file(lines);
  Json lane{{"id", "x"}, {"prompts", "text:" + file.path()}, {"requests", 15}, {"warmup", 5}};
  const LaneAttempts built = build(*lane_plan(lane));
  std::set<std::string> questions;
  for (const auto* list : {&built.unmeasured, &built.measured})
    for (const Attempt& each : *list) {
      const std::string prompt = prompt_of(each);
      EXPECT_EQ(prompt.substr(12, 9), "\n\nprompt ") << "a nonce makes it new to the engine";
      questions.insert(prompt.substr(14));
      EXPECT_FALSE(each.row.expect.contains("prompt_tokens"));
      EXPECT_TRUE(each.row.expect["prompt"].get<std::string>().starts_with("line-"));
    }
  EXPECT_EQ(questions.size(), 20u);
  EXPECT_EQ(built.counter_calls, 0);
  EXPECT_EQ(built.summary["prompts"]["source"], "text");
  EXPECT_EQ(built.summary["prompts"]["sha256"], base::sha256(lines));
  EXPECT_EQ(built.summary["prompt_tokens"], nullptr);

  lane["cache"] = "replay";
  lane["warmup"] = 0;
  const LaneAttempts replay = build(*lane_plan(lane));
  EXPECT_TRUE(prompt_of(replay.measured[0]).starts_with("prompt number"));
  EXPECT_EQ(prompt_of(replay.measured[0]), prompt_of(built.measured[0]).substr(14));
  EXPECT_EQ(replay.unmeasured[0].body, replay.measured[0].body);

  lane["requests"] = 21;
  const Error few = refused(*lane_plan(lane));
  EXPECT_NE(few.detail.find("21 prompts are wanted, but there are 20"), std::string::npos);

  const TestFile chats(
      R"({"messages":[{"role":"system","content":"brief"},{"role":"user","content":"q"}]})");
  const LaneAttempts chat = build(*lane_plan(
      Json{{"id", "x"}, {"prompts", "messages:" + chats.path()}, {"requests", 1}, {"warmup", 0}}));
  const Json messages = messages_of(chat.measured[0]);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_TRUE(messages[0]["content"].get<std::string>().ends_with("\n\nbrief"));
  EXPECT_EQ(messages[1]["content"], "q");
}

TEST(BuildPlan, FilesThatCannotBeUsedAreNamedWithTheirLine) {
  const TestFile trace("timestamp_s,prompt_tokens,output_tokens\n0,5,x\n");
  const Error bad =
      refused(*lane_plan(Json{{"id", "t"}, {"load", "trace"}, {"trace", trace.path()}}));
  EXPECT_NE(base::to_string(bad).find(trace.path() + ":2"), std::string::npos)
      << base::to_string(bad);
  EXPECT_NE(bad.detail.find("lane \"t\""), std::string::npos);
  EXPECT_NE(refused(plan_of(R"({"id":"x","prompts":"text:/nonexistent"})"))
                .detail.find("reading the prompts"),
            std::string::npos);
  EXPECT_NE(refused(plan_of(R"({"id":"x","load":"constant","rate":9999,"duration_s":9999})"))
                .detail.find("more than 1000000"),
            std::string::npos);
}

TEST(BuildPlan, CompletionsSessionsAreOneText) {
  const LaneAttempts built = build(plan_of(R"({"id":"s","load":"sessions","sessions":1,"turns":2,
      "api":"completions","prompt_tokens":60,"output_tokens":20,"warmup":0})"));
  const std::string first = prompt_of(built.measured[0]), second = prompt_of(built.measured[1]);
  EXPECT_EQ(shared(first, second), first.size());
  EXPECT_GT(second.size(), 2 * first.size());
}

}  // namespace
}  // namespace anvil::measure
