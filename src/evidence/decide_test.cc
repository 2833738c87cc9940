#include <gtest/gtest.h>

#include "base/hash.h"
#include "evidence/derive.h"
#include "evidence/metric_path.h"

namespace anvil::evidence {
namespace {

const Json kResults = Json::parse(R"({
  "lanes": [
    {"id": "a", "cache_state": "cold", "ttfo_ms": {"p50": 100.0}, "n": 3},
    {"id": "b", "cache_state": "prefix", "ttfo_ms": {"p50": 300.0}, "n": 4},
    {"id": "c", "cache_state": "cold", "ttfo_ms": {"p50": null}, "n": 5}],
  "empty": [],
  "flag": true, "word": "match", "nothing": null,
  "by_id": {"smoke": {"failed": 0}, "a/b": {"failed": 2}},
  "nested": [{"s": "x", "in": [{"v": 1}, {"v": 2}]}, {"s": "y", "in": [{"v": 9}]}]})");

Json gate(const char* metric, const char* op, Json threshold, const char* over = "every",
          Json select = nullptr) {
  Json out{{"id", "g"},    {"metric", metric},
           {"op", op},     {"threshold", std::move(threshold)},
           {"over", over}, {"on_fail", "no-promotion"},
           {"unit", "ms"}, {"because", "b"}};
  if (!select.is_null()) out["select"] = std::move(select);
  return out;
}

Json evaluate(const Json& one) {
  return decide(kResults, Json{{"gates", {one}}}, nullptr, Json{{"pinned", true}})["gates"][0];
}

TEST(Gates, Verdicts) {
  const struct {
    Json gate;
    const char* verdict;
    Json value;
    const char* where;
  } cases[] = {
      // every: one failure decides, else a missing value keeps it open
      {gate("lanes[*].ttfo_ms.p50", "<=", 200), "fail", 300.0, "/lanes/1/ttfo_ms/p50"},
      {gate("lanes[*].ttfo_ms.p50", "<=", 400), "not-measured", nullptr, "/lanes/2/ttfo_ms/p50"},
      {gate("lanes[*].n", "<=", 5), "pass", 5, "/lanes/2/n"},
      {gate("lanes[*].n", ">=", 3), "pass", 3, "/lanes/0/n"},
      {gate("lanes[*].n", ">", 3), "fail", 3, "/lanes/0/n"},
      {gate("lanes[*].n", "<", 4), "fail", 5, "/lanes/2/n"},
      {gate("lanes[*].n", "!=", 4), "fail", 4, "/lanes/1/n"},
      {gate("lanes[1].n", "==", 4.0), "pass", 4, "/lanes/1/n"},
      {gate("lanes[*].absent", "<=", 1), "not-measured", nullptr, "/lanes/0/absent"},
      // any
      {gate("lanes[*].n", ">=", 5, "any"), "pass", 5, "/lanes/2/n"},
      {gate("lanes[*].n", ">=", 6, "any"), "fail", 5, "/lanes/2/n"},
      {gate("lanes[*].ttfo_ms.p50", ">=", 900, "any"), "not-measured", nullptr,
       "/lanes/2/ttfo_ms/p50"},
      {gate("lanes[*].ttfo_ms.p50", "<=", 100, "any"), "pass", 100.0, "/lanes/0/ttfo_ms/p50"},
      // min, max, sum, count
      {gate("lanes[*].n", "<=", 3, "min"), "pass", 3, "/lanes/0/n"},
      {gate("lanes[*].n", "<=", 4, "max"), "fail", 5, "/lanes/2/n"},
      {gate("lanes[*].n", "==", 12, "sum"), "pass", 12, "/lanes"},
      {gate("lanes[*].ttfo_ms.p50", "<=", 1, "sum"), "not-measured", nullptr,
       "/lanes/2/ttfo_ms/p50"},
      {gate("lanes[*].n", ">=", 3, "count"), "pass", 3, "/lanes"},
      {gate("lanes[*].ttfo_ms.p50", "==", 2, "count"), "pass", 2, "/lanes"},
      {gate("empty[*].n", "==", 0, "count"), "pass", 0, "/empty"},
      {gate("absent[*].n", "==", 0, "count"), "not-measured", nullptr, ""},
      {gate("flag", "==", 1, "count"), "not-measured", nullptr, ""},
      {gate("lanes[*].id", "<=", 1, "min"), "not-measured", nullptr, "/lanes/0/id"},
      // nothing there
      {gate("empty[*].n", "<=", 1), "not-measured", nullptr, "/empty"},
      {gate("absent.deeper", "<=", 1), "not-measured", nullptr, "/absent"},
      {gate("nothing", "==", 1), "not-measured", nullptr, "/nothing"},
      {gate("lanes[9].n", "<=", 1), "not-measured", nullptr, "/lanes/9"},
      // kinds
      {gate("flag", "==", true), "pass", true, "/flag"},
      {gate("flag", "==", false), "fail", true, "/flag"},
      {gate("word", "==", "match"), "pass", "match", "/word"},
      {gate("word", "!=", "mismatch"), "pass", "match", "/word"},
      {gate("word", ">=", "a"), "not-measured", nullptr, "/word"},
      {gate("word", "==", 1), "not-measured", nullptr, "/word"},
      {gate("lanes", "==", 1), "not-measured", nullptr, "/lanes"},
      // objects, nesting, select
      {gate("by_id[*].failed", "<=", 0), "fail", 2, "/by_id/a~1b/failed"},
      {gate("nested[*].in[*].v", "<=", 9), "pass", 9, "/nested/1/in/0/v"},
      {gate("nested[*].in[*].v", "<=", 2, "every", Json{{"s", "x"}}), "pass", 2,
       "/nested/0/in/1/v"},
      {gate("lanes[*].ttfo_ms.p50", "<=", 200, "every", Json{{"id", "a"}}), "pass", 100.0,
       "/lanes/0/ttfo_ms/p50"},
      {gate("lanes[*].n", "<=", 4, "max", Json{{"id", {"a", "b"}}}), "pass", 4, "/lanes/1/n"},
      {gate("lanes[*].n", "<=", 9, "every", Json{{"id", "z"}}), "not-measured", nullptr, "/lanes"},
      {gate("lanes[*].n", "==", 2, "count", Json{{"cache_state", "cold"}}), "pass", 2, "/lanes"},
      {gate("lanes[*].n", "<=", 9, "every", Json{{"unheard", "of"}}), "not-measured", nullptr,
       "/lanes"},
      // a policy that makes no sense
      {gate("lanes[", "<=", 1), "not-measured", nullptr, ""},
      {gate("flag", "=~", 1), "not-measured", nullptr, ""},
      {gate("flag", "==", true, "most"), "not-measured", nullptr, ""},
  };
  for (const auto& one : cases) {
    const Json out = evaluate(one.gate);
    const std::string what = base::canonical(one.gate);
    EXPECT_EQ(out["verdict"], one.verdict) << what;
    EXPECT_EQ(out["value"], one.value) << what;
    EXPECT_EQ(out["where"], one.where) << what;
    EXPECT_EQ(out["verdict"] == "not-measured", out["detail"] != "") << what;
    const bool points_at_value =
        out["verdict"] == "pass" && one.gate["over"] != "sum" && one.gate["over"] != "count";
    if (points_at_value) {
      EXPECT_EQ(kResults.at(Json::json_pointer(one.where)), out["value"]) << what;
    }
  }
}

TEST(MetricPath, RefusesWhatItCannotRead) {
  for (const char* text : {"", ".", "a.", ".a", "a..b", "a[", "a[]", "a[x]", "a[-1]", "a[+1]",
                           "a b", "[*]", "a[*", "a[99999999]", "a[*]b", "a/b", "a[*].", "a[1.5]"})
    EXPECT_FALSE(parse_metric_path(text)) << text;
  for (const char* text : {"a", "a-b_1.c", "a[*]", "a[0][*].b", "lanes[*].ttfo_ms.p50"})
    EXPECT_TRUE(parse_metric_path(text)) << text;
}

Json failing(const char* on_fail) {
  Json out = gate("flag", "==", false);
  out["on_fail"] = on_fail;
  return out;
}
Json missing(const char* on_fail) {
  Json out = gate("nothing", "==", false);
  out["on_fail"] = on_fail;
  return out;
}

TEST(Decide, Rules) {
  const Json passing = gate("flag", "==", true);
  const Json pinned{{"pinned", true}, {"role", "candidate"}};
  const Json loose{{"pinned", false}, {"role", "candidate"}, {"unpinned", {"model.revision"}}};
  const Json control{{"pinned", true}, {"role", "control"}};
  const auto failed = [](const char* step, const char* kind = "engine_exited") {
    return Json{{"step", step}, {"kind", kind}, {"class", nullptr}, {"detail", "why"}};
  };
  const struct {
    Json gates, failed_step, recipe;
    bool requires_pinned;
    const char* decision;
  } cases[] = {
      {Json::array({passing}), nullptr, pinned, true, "promote-eligible"},
      {Json::array(), nullptr, pinned, true, "promote-eligible"},
      {Json::array({passing}), nullptr, control, true, "control"},
      {Json::array({passing, failing("watch")}), nullptr, control, true, "watch"},
      {Json::array({missing("watch")}), nullptr, pinned, true, "watch"},
      {Json::array({failing("no-promotion"), failing("watch")}), nullptr, pinned, true,
       "no-promotion"},
      {Json::array({missing("no-promotion")}), nullptr, pinned, true, "no-promotion"},
      {Json::array({failing("reject"), failing("no-promotion")}), nullptr, pinned, true,
       "rejected"},
      {Json::array({missing("reject")}), nullptr, pinned, true, "no-promotion"},
      {Json::array({passing}), nullptr, loose, true, "no-promotion"},
      {Json::array({passing}), nullptr, loose, false, "promote-eligible"},
      {Json::array({passing}), failed("launch"), pinned, true, "rejected"},
      {Json::array({passing}), failed("identity", "mismatch"), pinned, true, "rejected"},
      {Json::array({passing}), failed("preflight"), pinned, true, "rejected"},
      {Json::array({passing}), failed("launch", "cancelled"), pinned, true, "no-promotion"},
      {Json::array({passing}), failed("lanes"), pinned, true, "no-promotion"},
      {Json::array({passing}), failed("stop"), control, true, "no-promotion"},
  };
  for (const auto& one : cases) {
    const Json policy{{"gates", one.gates}, {"requires_pinned", one.requires_pinned}};
    const Json out = decide(kResults, policy, one.failed_step, one.recipe);
    EXPECT_EQ(out["decision"], one.decision) << base::canonical(one.gates) << one.failed_step;
    EXPECT_FALSE(out["reasons"].empty());
    EXPECT_EQ(out["policy_digest"], base::sha256(base::canonical(policy)));
    EXPECT_EQ(out["results_sha256"], base::sha256(base::pretty(kResults)));
    EXPECT_EQ(out["failed_step"], one.failed_step);
  }
}

TEST(Decide, ReasonsNameValueThresholdAndPlace) {
  const Json out =
      decide(kResults, Json{{"gates", {gate("lanes[*].ttfo_ms.p50", "<=", 200), missing("watch")}}},
             nullptr, Json{{"pinned", true}});
  ASSERT_EQ(out["reasons"].size(), 2u);
  EXPECT_EQ(out["reasons"][0],
            "gate g failed: 300.0 ms at /lanes/1/ttfo_ms/p50, required <= 200 ms");
  EXPECT_EQ(out["reasons"][1],
            "gate g not measured at /nothing: not measured there, required == false ms");
}

TEST(Decide, AnyShapeOfInputGivesADecision) {
  for (const char* text : {"null", "[]", "3", R"({"gates":3})", R"({"gates":[3,null,{}]})",
                           R"({"gates":[{"id":1,"metric":2,"op":3,"select":4,"over":5}]})"}) {
    const Json odd = Json::parse(text);
    EXPECT_TRUE(decide(odd, odd, odd, odd)["decision"].is_string()) << text;
  }
}

}  // namespace
}  // namespace anvil::evidence
