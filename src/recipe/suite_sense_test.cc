#include <gtest/gtest.h>

#include <algorithm>

#include "recipe/policy.h"

namespace anvil::recipe {
namespace {

std::string lane(const std::string& lines) {
  return "schema = 'anvil/suite/v1'\nname = 's'\n[[lane]]\nid = 'l'\n" + lines;
}

std::string messages(const std::vector<Diagnostic>& diagnostics) {
  std::string out;
  for (const auto& diagnostic : diagnostics) out += to_string(diagnostic) + "\n";
  return out;
}

Json canonical_lane(const std::string& lines) {
  const auto loaded = parse_suite(lane(lines), "f");
  EXPECT_TRUE(loaded.diagnostics.empty()) << lines << messages(loaded.diagnostics);
  return loaded.ok() ? loaded.value->canonical["lane"][0] : Json();
}

std::string digest(const std::string& lines) {
  const auto loaded = parse_suite(lane(lines), "f");
  EXPECT_TRUE(loaded.ok()) << messages(loaded.diagnostics);
  return loaded.ok() ? loaded.value->digest : "";
}

TEST(SuiteLanes, EveryLoadCanBeSaid) {
  for (
      const char* lines :
      {"load = 'constant'\nrate = 2\nduration_s = 30\n",
       "load = 'poisson'\nrate = 2.5\nrequests = 100\nmax_outstanding = 64\n",
       "load = 'gamma'\nrate = 2\nburstiness = 0.25\nduration_s = 30\ndrain = 'cut'\ndrain_s = 5\n",
       "load = 'steps'\nsteps = [{ rate = 1, seconds = 10 }, { rate = 1, to_rate = 8, seconds = "
       "20 }]\nstep_process = 'constant'\n",
       "load = 'trace'\ntrace = 'a.jsonl'\ntrace_scale = 0.5\n",
       "load = 'trace'\ntrace = 'a.jsonl'\ncache = 'cold'\nduration_s = 60\n",
       "load = 'sessions'\nsessions = 8\nturns = 4\nthink_time_s = 2\nthink_time_dist = "
       "'exponential'\nconcurrency = 4\n",
       "load = 'sessions'\nsessions = 8\nturns = 4\nrate = 0.5\nmax_outstanding = 4\n",
       "prompt_tokens = { dist = 'lognormal', median = 800, sigma = 0.7, min = 100, max = 4000 }\n"
       "output_tokens = { dist = 'empirical', values = [10, 20], weights = [1, 0.5] }\n",
       "prompt_tokens = { dist = 'uniform', min = 100, max = 200 }\n"
       "output_tokens = { dist = 'fixed', value = 9 }\n",
       "prefix_groups = 3\nprefix_tokens = 400\n", "prompts = 'sharegpt:x.json'\n",
       "prompts = 'text:x.txt'\napi = 'completions'\ncache = 'replay'\n",
       "connections = 'pool'\nthreads = 2\nconcurrency = 4\nrespect_retry_after = true\n",
       "objectives = { ttfo_ms_p90 = 500, tpot_ms_p50 = 20.5 }\n",
       "[[lane.mix]]\nname = 'a'\nweight = 3\nprompt_tokens = 64\n[[lane.mix]]\nname = 'b'\nweight "
       "= 1\noutput_tokens = { dist = 'uniform', min = 1, max = 9 }\n"}) {
    EXPECT_TRUE(canonical_lane(lines).is_object());
  }
}

TEST(SuiteLanes, CanonicalFormSaysWhatALoadNeedsAndNothingElse) {
  const std::string common =
      R"("id":"l","output_tokens":128,"warmup":2,"api":"chat","stream":true)";
  EXPECT_EQ(canonical_lane("load = 'poisson'\nrate = 2\nduration_s = 30\n"),
            Json::parse("{" + common + R"(,"load":"poisson","rate":2.0,"duration_s":30.0,
                "prompt_tokens":512,"cache":"cold","fixed_output":true})"));
  EXPECT_EQ(canonical_lane("load = 'sessions'\nsessions = 4\nturns = 2\n"),
            Json::parse("{" + common + R"(,"load":"sessions","sessions":4,"turns":2,
                "concurrency":1,"prompt_tokens":512,"cache":"replay","fixed_output":true})"));
  EXPECT_EQ(canonical_lane("prompts = 'messages:a.jsonl'\n"),
            Json::parse("{" + common + R"(,"prompts":"messages:a.jsonl","concurrency":1,
                "requests":12,"cache":"cold","fixed_output":false})"));
  EXPECT_EQ(canonical_lane("load = 'trace'\ntrace = 'x'\n"), Json::parse(R"({"id":"l","warmup":2,
      "api":"chat","stream":true,"load":"trace","trace":"x","cache":"replay",
      "fixed_output":true})"));
  EXPECT_EQ(canonical_lane("prefix_groups = 2\n")["cache"], "prefix");
}

TEST(SuiteLanes, SayingADefaultChangesNothing) {
  const std::string plain = digest("");
  EXPECT_EQ(digest("load = 'closed'\nconnections = 'reuse'\nthreads = 1\nprompts = 'synthetic'\n"
                   "respect_retry_after = false\n"),
            plain);
  EXPECT_NE(digest("connections = 'fresh'\n"), plain);
  EXPECT_EQ(digest("load = 'constant'\nrate = 1\nmax_outstanding = 512\ndrain = 'finish'\n"),
            digest("load = 'constant'\nrate = 1.0\n"));
}

TEST(SuiteLanes, Refusals) {
  const struct {
    std::string lines, key, words;
  } cases[] = {
      {"rate = 2\n", "rate", "no meaning with load = \"closed\"; it is for load = \"constant\""},
      {"load = 'poison'\n", "load", "did you mean \"poisson\""},
      {"load = 'poisson'\n", "", "needs rate"},
      {"load = 'gamma'\nrate = 1\n", "", "needs burstiness"},
      {"load = 'steps'\n", "", "needs steps"},
      {"load = 'steps'\nsteps = [{ rate = 0, seconds = 9 }]\n", "steps", "not a single request"},
      {"load = 'steps'\nsteps = [{ rate = 4 }]\n", "steps[0].seconds", "missing"},
      {"load = 'steps'\nsteps = [{ rate = 4, seconds = 1, to = 2 }]\n", "steps[0].to",
       "unknown key"},
      {"load = 'steps'\nsteps = [{ rate = 4, seconds = 1 }]\nburstiness = 2\n", "burstiness",
       "only gamma"},
      {"load = 'trace'\n", "", "needs trace"},
      {"load = 'trace'\ntrace = 'x'\nprompt_tokens = 5000\n", "prompt_tokens",
       "stand in the trace"},
      {"load = 'trace'\ntrace = 'x'\ncache = 'prefix'\n", "cache", "says itself"},
      {"load = 'sessions'\nsessions = 2\n", "", "needs turns"},
      {"load = 'sessions'\nsessions = 2\nturns = 2\nconcurrency = 4\n", "sessions",
       "2 sessions never reach"},
      {"load = 'sessions'\nsessions = 2\nturns = 2\ncache = 'cold'\n", "cache",
       "every turn repeats"},
      {"load = 'sessions'\nsessions = 2\nturns = 2\nrate = 1\nconcurrency = 2\n", "concurrency",
       "not by both"},
      {"load = 'sessions'\nsessions = 2\nturns = 2\nmax_outstanding = 2\n", "max_outstanding",
       "start by concurrency"},
      {"load = 'sessions'\nsessions = 2\nturns = 2\nthink_time_dist = 'fixed'\n", "think_time_dist",
       "add think_time_s"},
      {"load = 'sessions'\nsessions = 2\nturns = 2\nprompts = 'text:x'\n", "prompts", "no meaning"},
      {"turns = 3\n", "turns", "it is for load = \"sessions\""},
      {"load = 'poisson'\nrate = 1\nrequests = 9\nduration_s = 9\n", "duration_s", "two ends"},
      {"load = 'poisson'\nrate = 0.01\nduration_s = 9\n", "duration_s", "not a single request"},
      {"load = 'poisson'\nrate = 100000\nduration_s = 86400\n", "duration_s", "too many"},
      {"load = 'poisson'\nrate = 0\n", "rate", "too small"},
      {"load = 'poisson'\nrate = 1\nconcurrency = 2\n", "concurrency", "no meaning"},
      {"load = 'poisson'\nrate = 1\ndrain = 'cut'\n", "drain", "add drain_s"},
      {"load = 'poisson'\nrate = 1\ndrain_s = 3\n", "drain_s", "only drain = \"cut\""},
      {"threads = 2\n", "threads", "wanted at most 1"},
      {"prompts = 'sharegtp:x'\n", "prompts", "did you mean \"sharegpt:FILE\""},
      {"prompts = 'x.json'\n", "prompts", "wanted \"synthetic\""},
      {"prompts = 'text:'\n", "prompts", "names no file"},
      {"prompts = 'text:x'\nfixed_output = true\n", "fixed_output", "natural length"},
      {"prompts = 'text:x'\nprompt_tokens = 99\n", "prompt_tokens", "the length that they have"},
      {"prompts = 'text:x'\ncache = 'prefix'\n", "cache", "no shared beginning"},
      {"prompts = 'messages:x'\napi = 'completions'\n", "api", "need a chat surface"},
      {"prefix_tokens = 470\n", "prefix_tokens", "wanted at most 464"},
      {"prefix_groups = 13\n", "prefix_groups", "more groups than requests"},
      {"prefix_groups = 2\ncache = 'cold'\n", "cache", "set cache = \"prefix\""},
      {"prompt_tokens = { dist = 'unifrom', min = 9, max = 10 }\n", "prompt_tokens.dist",
       "did you mean \"uniform\""},
      {"prompt_tokens = { min = 9 }\n", "prompt_tokens", "no distribution is named"},
      {"prompt_tokens = { dist = 'uniform', min = 90 }\n", "prompt_tokens", "needs max"},
      {"prompt_tokens = { dist = 'uniform', min = 90, max = 80 }\n", "prompt_tokens.max",
       "below min"},
      {"prompt_tokens = { dist = 'uniform', min = 2, max = 80 }\n", "prompt_tokens.min",
       "integer, tokens, 8 to"},
      {"prompt_tokens = { dist = 'fixed', vaule = 80, value = 80 }\n", "prompt_tokens.vaule",
       "did you mean \"value\""},
      {"prompt_tokens = { dist = 'lognormal', median = 99, sigma = 0 }\n", "prompt_tokens.sigma",
       "above 0"},
      {"output_tokens = { dist = 'empirical', values = [] }\n", "output_tokens.values",
       "list of lengths"},
      {"output_tokens = { dist = 'empirical', values = [1, 0] }\n", "output_tokens.values[1]",
       "found 0"},
      {"output_tokens = { dist = 'empirical', values = [1], weights = [1, 2] }\n",
       "output_tokens.weights", "list of 1 numbers"},
      {"output_tokens = { dist = 'empirical', values = [1], weights = [0] }\n",
       "output_tokens.weights[0]", "above 0"},
      {"prompt_tokens = 'many'\n", "prompt_tokens", "integer or distribution table"},
      {"mix = [{ name = 'a', weight = 1 }, { name = 'a', weight = 1 }]\n", "mix[1].name",
       "stands twice"},
      {"mix = [{ name = 'a' }]\n", "mix[0].weight", "missing"},
      {"mix = [{ name = 'a', weight = 1, prompt_tokens = { dist = 'x' } }]\n",
       "mix[0].prompt_tokens.dist", "found \"x\""},
      {"objectives = { ttfo_ms_p80 = 5 }\n", "objectives.ttfo_ms_p80", "did you mean"},
      {"objectives = { speed = 5 }\n", "objectives.speed", "METRIC_PERCENTILE"},
      {"objectives = { ttfo_ms_p90 = 'x' }\n", "objectives.ttfo_ms_p90", "wanted number"},
      {"stream = false\nobjectives = { ttfo_ms_p90 = 5 }\n", "objectives.ttfo_ms_p90",
       "without a stream"},
      {"cache_proof = 'maybe'\n", "cache_proof", "one of"},
  };
  for (const auto& c : cases) {
    const auto loaded = parse_suite(lane(c.lines), "f");
    const std::string key = c.key.empty() ? "lane[0]" : "lane[0]." + c.key;
    EXPECT_FALSE(loaded.ok()) << c.lines;
    ASSERT_EQ(loaded.diagnostics.size(), 1u) << c.lines << messages(loaded.diagnostics);
    EXPECT_EQ(loaded.diagnostics[0].at.key, key) << c.lines;
    EXPECT_GT(loaded.diagnostics[0].at.line, 2) << c.lines;
    EXPECT_NE(to_string(loaded.diagnostics[0]).find(c.words), std::string::npos)
        << c.lines << messages(loaded.diagnostics);
  }
}

TEST(SuiteLanes, AllThatIsWrongIsSaidAtOnceInFileOrder) {
  const auto loaded =
      parse_suite(lane("load = 'poisson'\nturns = 2\nthreads = 0\nobjectives = { a = 1 }\n"), "f");
  ASSERT_EQ(loaded.diagnostics.size(), 4u) << messages(loaded.diagnostics);
  EXPECT_EQ(loaded.diagnostics[0].at.key, "lane[0]");
  EXPECT_EQ(loaded.diagnostics[1].at.key, "lane[0].turns");
  EXPECT_EQ(loaded.diagnostics[2].at.key, "lane[0].threads");
  EXPECT_EQ(loaded.diagnostics[3].at.key, "lane[0].objectives.a");
}

}  // namespace
}  // namespace anvil::recipe
