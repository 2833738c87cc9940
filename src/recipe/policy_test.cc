#include "recipe/policy.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace anvil::recipe {
namespace {

const std::string kPolicy = "schema = 'anvil/policy/v1'\nname = 'p'\n";
const std::string kSuite = "schema = 'anvil/suite/v1'\nname = 's'\n";
const std::string kHost = "schema = 'anvil/host/v1'\n";

std::string gate(const std::string& lines) {
  return "[[gate]]\nid = 'g'\nbecause = 'b'\n" + lines;
}

std::string messages(const std::vector<Diagnostic>& diagnostics) {
  std::string out;
  for (const auto& diagnostic : diagnostics) out += to_string(diagnostic) + "\n";
  return out;
}

struct Case {
  std::string text;
  std::string key;
  std::string words;
};

template <class Load>
void expect_refusals(const std::vector<Case>& cases, Load load) {
  for (const auto& c : cases) {
    const auto loaded = load(c.text, "f");
    const std::string all = messages(loaded.diagnostics);
    EXPECT_FALSE(loaded.ok()) << c.text;
    EXPECT_EQ(loaded.diagnostics.size(), 1u) << c.text << all;
    EXPECT_TRUE(std::any_of(loaded.diagnostics.begin(), loaded.diagnostics.end(),
                            [&](const Diagnostic& diagnostic) {
                              return diagnostic.at.key == c.key &&
                                     to_string(diagnostic).find(c.words) != std::string::npos;
                            }))
        << c.key << ": " << c.words << "\n"
        << all;
  }
}

TEST(Policy, CanonicalHasEveryDefaultAndNoLabel) {
  const auto loaded = parse_policy(kPolicy + "notes = 'n'\n" +
                                       gate("metric = 'lanes[*].ttfo_ms.p50'\nop = '<='\nthreshold "
                                            "= 5\nselect = { id = 'c1' }\n"),
                                   "f");
  ASSERT_TRUE(loaded.ok()) << messages(loaded.diagnostics);
  EXPECT_EQ(loaded.value->name, "p");
  EXPECT_EQ(loaded.value->canonical, Json::parse(R"({"schema":"anvil/policy/v1","name":"p",
      "requires_pinned":false,"gates":[{"id":"g","because":"b","metric":"lanes[*].ttfo_ms.p50",
      "op":"<=","threshold":5,"select":{"id":"c1"},"over":"every","on_fail":"reject"}]})"));
  EXPECT_EQ(loaded.value->digest.size(), 64u);
}

TEST(Policy, DigestFollowsMeaning) {
  const auto digest = [](const std::string& text) {
    const auto loaded = parse_policy(text, "f");
    EXPECT_TRUE(loaded.ok()) << messages(loaded.diagnostics);
    return loaded.ok() ? loaded.value->digest : "";
  };
  const std::string base = digest(kPolicy + gate("metric = 'a.b'\nop = '<='\nthreshold = 5\n"));
  EXPECT_EQ(digest("# c\n" + kPolicy + "notes = 'x'\n" +
                   gate("threshold = 5\nop = '<='\non_fail = 'reject'\nmetric = 'a.b'\n")),
            base);
  EXPECT_NE(digest(kPolicy + gate("metric = 'a.b'\nop = '<='\nthreshold = 6\n")), base);
  EXPECT_NE(digest(kPolicy + gate("metric = 'a.b'\nop = '<'\nthreshold = 5\n")), base);
  EXPECT_NE(digest(kPolicy + gate("metric = 'a.b'\nop = '<='\nthreshold = 5\non_fail = 'watch'\n")),
            base);
}

TEST(Policy, Refusals) {
  const std::string fine = "metric = 'a[*].b'\nop = '=='\nthreshold = 1\n";
  std::vector<Case> cases = {
      {kPolicy, "gate", "no gate"},
      {kPolicy + gate(fine) + gate(fine), "gate[1].id", "stands twice"},
      {kPolicy + gate("metric = 'a'\nop = '<='\nthreshold = true\n"), "gate[0].threshold",
       "has no order"},
      {kPolicy + gate("metric = 'a'\nop = '>'\nthreshold = 'x'\n"), "gate[0].threshold",
       "has no order"},
      {kPolicy + gate("metric = 'a[*]'\nover = 'count'\nop = '=='\nthreshold = true\n"),
       "gate[0].threshold", "with the count of values"},
      {kPolicy + gate("metric = 'a'\nover = 'sum'\nop = '=='\nthreshold = 1\n"), "gate[0].over",
       "of a single value"},
      {kPolicy + gate("metric = 'a'\nop = '=='\nthreshold = 1\nselect = { x = 1 }\n"),
       "gate[0].select", "nothing to select from"},
      {kPolicy + gate(fine + "select = { x = { y = 1 } }\n"), "gate[0].select.x",
       "or a list of them"},
      {kPolicy + gate(fine + "select = { x = [] }\n"), "gate[0].select.x", "or a list of them"},
      {kPolicy + gate("metric = 'a'\nop = '=<'\nthreshold = 1\n"), "gate[0].op", "one of"},
      {kPolicy + gate("metric = 'a'\nop = '<='\nthreshold = nan\n"), "gate[0].threshold", "finite"},
      {kPolicy + "[[gate]]\nid = 'g'\nmetric = 'a'\nop = '<='\nthreshold = 1\n", "gate[0].because",
       "missing"},
  };
  for (const char* metric :
       {"a..b", ".a", "a.", "a[", "a[]", "a[x]", "a[-1]", "a[*]b", "a b", "a/b"})
    cases.push_back(
        {kPolicy + gate("metric = '" + std::string(metric) + "'\nop = '<='\nthreshold = 1\n"),
         "gate[0].metric", "not a path"});
  expect_refusals(cases, parse_policy);
}

TEST(Policy, PathsThatAreFine) {
  for (const char* metric :
       {"a", "a.b", "a[*].b[2].c", "a[*][*]", "checks.by_id.tool-result.passed"}) {
    const auto loaded = parse_policy(
        kPolicy + gate("metric = '" + std::string(metric) + "'\nop = '<='\nthreshold = 1\n"), "f");
    EXPECT_TRUE(loaded.ok()) << messages(loaded.diagnostics);
  }
}

TEST(Suite, CanonicalHasEveryDefault) {
  const auto loaded = parse_suite(kSuite + "[[lane]]\nid = 'c1'\n", "f");
  ASSERT_TRUE(loaded.ok()) << messages(loaded.diagnostics);
  const Json& suite = loaded.value->canonical;
  EXPECT_EQ(suite["seed"], 1);
  EXPECT_EQ(suite["prompt_style"], "chat");
  EXPECT_EQ(suite["limits"]["event_bytes"], 4194304);
  EXPECT_EQ(suite["checks"]["attempts"], 1);
  EXPECT_EQ(suite["checks"]["include"], Json::array());
  EXPECT_FALSE(suite["checks"].contains("efforts"));
  EXPECT_EQ(suite["fingerprint"]["enabled"], true);
  EXPECT_EQ(suite["lane"][0], Json::parse(R"({"id":"c1","prompt_tokens":512,"output_tokens":128,
      "concurrency":1,"requests":12,"warmup":2,"cache":"cold","fixed_output":true,"api":"chat",
      "stream":true})"));
  EXPECT_EQ(suite["ladder"]["targets"], Json::array());
  EXPECT_EQ(suite["ladder"]["depths"], Json::array({0.1, 0.5, 0.9}));
  EXPECT_EQ(parse_suite(kSuite, "f").value->canonical["lane"], Json::array());
}

TEST(Suite, DigestIsThatOfTheFilledForm) {
  const auto digest = [](const std::string& text) { return parse_suite(text, "f").value->digest; };
  EXPECT_EQ(digest(kSuite), digest(kSuite + "notes = 'x'\nseed = 1\n[limits]\nidle_s = 120\n"));
  EXPECT_NE(digest(kSuite), digest(kSuite + "seed = 2\n"));
}

TEST(Suite, Refusals) {
  const auto lane = [](const std::string& lines) {
    return kSuite + "[[lane]]\nid = 'l'\n" + lines;
  };
  expect_refusals(
      {
          {lane("") + "[[lane]]\nid = 'l'\n", "lane[1].id", "stands twice"},
          {lane("requests = 0\n"), "lane[0].requests", "too small"},
          {lane("concurrency = 8\nrequests = 4\n"), "lane[0].requests", "never reach"},
          {lane("concurrency = 16\n"), "lane[0].requests", "12 requests never reach"},
          {lane("cache = 'warm'\n"), "lane[0].cache", "one of"},
          {kSuite + "[ladder]\ntargets = [1024, 1024]\n", "ladder.targets[1]", "not above 1024"},
          {kSuite + "[ladder]\ntargets = [2048, 1024]\n", "ladder.targets[1]", "ascending"},
          {kSuite + "[ladder]\ndepths = [0.5, 1]\n", "ladder.depths[1]", "below 1"},
          {kSuite + "[ladder]\ndepths = [0]\n", "ladder.depths[0]", "above 0"},
          {kSuite + "[checks]\ninclude = ['json', 'json']\n", "checks.include[1]", "stands twice"},
          {kSuite + "[checks]\nefforts = ['low', 'low']\n", "checks.efforts[1]", "stands twice"},
          {kSuite + "[limits]\ntotl_s = 3\n", "limits.totl_s", "did you mean \"total_s\""},
      },
      parse_suite);
}

TEST(Host, RolesByName) {
  const auto loaded =
      parse_host(kHost +
                     "[[role]]\nname = 'compute-a'\ngpu = 'GPU-1'\n[[role]]\nname = 'compute-b'\n"
                     "gpu = 'GPU-2'\n",
                 "f");
  ASSERT_TRUE(loaded.ok()) << messages(loaded.diagnostics);
  EXPECT_EQ(loaded.value->roles["compute-b"]["gpu"], "GPU-2");
  expect_refusals(
      {{kHost + "[[role]]\nname = 'a'\ngpu = '0'\n", "role[0].gpu", "not a UUID"},
       {kHost + "[[role]]\nname = 'a'\ngpu = 'GPU-1'\n[[role]]\nname = 'a'\ngpu = 'GPU-2'\n",
        "role[1].name", "stands twice"},
       {kHost + "[[role]]\nname = 'a'\ngpu = 'GPU-1'\n[[role]]\nname = 'b'\ngpu = 'GPU-1'\n",
        "role[1].gpu", "stands twice"}},
      parse_host);
}

}  // namespace
}  // namespace anvil::recipe
