#include "evidence/client_error.h"

#include <gtest/gtest.h>

namespace anvil::evidence {
namespace {

Json point(const std::string& lane, std::vector<int64_t> errors) {
  return {{"lane", lane},
          {"concurrency", 4},
          {"events_per_s", 80.0},
          {"stamp_error_ns", errors},
          {"first_output_error_ns", errors},
          {"gap_error_ns", errors},
          {"server", {{"void", false}, {"void_because", ""}}}};
}
Json distribution(double p50, double p99) {
  return {{"n", 700},       {"min", 0.1},     {"p50", p50},
          {"p90", nullptr}, {"p95", nullptr}, {"p99", p99},
          {"max", 99.0},    {"mean", 1.0},    {"median_below_floor", nullptr}};
}

TEST(ClientError, StandsBesideEachPercentile) {
  const ClientError error(
      Json{{"points", Json::array({point("c4", {-1000, 2000, 3000, 400'000})})}});
  Json d = distribution(10, 20);
  error.annotate("c4", ClientError::Of::kFirstOutput, d);
  EXPECT_DOUBLE_EQ(d["client_error_ms"]["p50"], 0.002);
  EXPECT_DOUBLE_EQ(d["client_error_ms"]["p99"], 0.4);
  EXPECT_EQ(d["p99"], 20.0);
  EXPECT_FALSE(d.contains("refused"));
  EXPECT_DOUBLE_EQ(error.summary("c4")["stamp_us"]["p50"], 2.0);
  EXPECT_EQ(error.summary("c4")["valid"], true);
}

TEST(ClientError, RefusesAPercentileThatIsMostlyOurs) {
  const ClientError error(Json{{"points", Json::array({point("c4", {1000, 2000, 5'000'000})})}});
  Json d = distribution(10, 20);
  error.annotate("c4", ClientError::Of::kGap, d);
  EXPECT_EQ(d["p50"], 10.0);
  EXPECT_TRUE(d["p99"].is_null());
  EXPECT_EQ(d["refused"]["p99"]["value"], 20.0);
  EXPECT_EQ(d["refused"]["p99"]["client_error_ms"], 5.0);
}

TEST(ClientError, TwoPercentOfALongTimeIsAllowed) {
  const ClientError error(Json{{"points", Json::array({point("c4", {5'000'000})})}});
  Json d = distribution(300, 250);
  error.annotate("c4", ClientError::Of::kGap, d);
  EXPECT_EQ(d["p50"], 300.0);
  EXPECT_EQ(d["p99"], 250.0);  // 2 % of 250 ms is the error itself
}

TEST(ClientError, ALateEngineProvesNothing) {
  Json late = point("c4", {5'000'000});
  late["server"] = {{"void", true}, {"void_because", "p99 lateness 9 ms"}};
  const ClientError error(Json{{"points", Json::array({late})}});
  Json d = distribution(10, 20);
  error.annotate("c4", ClientError::Of::kGap, d);
  EXPECT_EQ(d["p99"], 20.0);
  EXPECT_FALSE(d.contains("client_error_ms"));
  EXPECT_EQ(error.summary("c4")["valid"], false);
  EXPECT_NE(error.summary("c4")["because"].get<std::string>().find("p99 lateness"),
            std::string::npos);
}

TEST(ClientError, DocumentsOfAnyShapeAreTaken) {
  for (const Json& odd :
       {Json(nullptr), Json(3), Json{{"points", 7}}, Json{{"points", {1, "x"}}},
        Json{{"points", {{{"lane", 3}, {"stamp_error_ns", {"a", 1.5, INT64_MIN}}}}}}}) {
    const ClientError error(odd);
    Json d = distribution(1, 2);
    error.annotate("c4", ClientError::Of::kStamp, d);
    EXPECT_EQ(d["p99"], 2.0);
    EXPECT_TRUE(error.summary("c4").is_null());
  }
}

}  // namespace
}  // namespace anvil::evidence
