#include "wire/prometheus.h"

#include <gtest/gtest.h>

#include <cmath>

namespace anvil::wire {
namespace {

constexpr std::string_view kVllm = R"(# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a \"b\" \\ c\nd"} 2.0
vllm:num_requests_running{engine="1",model_name="x",} 3
vllm:prompt_tokens_total 1.5e+03 1395066363000

  vllm:spaces { a = "b" , c = "d" }   7
vllm:h_bucket{le="+Inf"} 4 # {trace_id="x"} 1.0
vllm:nan NaN
vllm:inf +Inf
vllm:neg -inf
# EOF
)";

TEST(PrometheusTest, ReadsSamples) {
  const auto samples = parse_prometheus(kVllm);
  ASSERT_TRUE(samples.has_value()) << samples.error().detail;
  ASSERT_EQ(samples->size(), 8u);
  EXPECT_EQ((*samples)[0].name, "vllm:num_requests_running");
  EXPECT_EQ((*samples)[0].label("model_name"), "a \"b\" \\ c\nd");
  EXPECT_EQ((*samples)[0].label("absent"), "");
  EXPECT_EQ((*samples)[2].value, 1500);
  EXPECT_EQ((*samples)[3].label("c"), "d");
  EXPECT_EQ((*samples)[4].label("le"), "+Inf");
  EXPECT_TRUE(std::isnan((*samples)[5].value));
  EXPECT_EQ((*samples)[6].value, INFINITY);
  EXPECT_EQ((*samples)[7].value, -INFINITY);
}

TEST(PrometheusTest, TreatsTotalAsTheSameMetric) {
  const auto samples = parse_prometheus("a_total{x=\"1\"} 1\na{x=\"2\"} 2\na_totals 4\nn NaN\n");
  ASSERT_TRUE(samples.has_value());
  EXPECT_EQ(sum(*samples, "a"), 3);
  EXPECT_EQ(sum(*samples, "a_total"), 3);
  EXPECT_EQ(sum(*samples, "a", "x", "2"), 2);
  EXPECT_EQ(sum(*samples, "a", "x", "3"), std::nullopt);
  EXPECT_EQ(sum(*samples, "b"), std::nullopt);
  EXPECT_EQ(sum(*samples, "n"), std::nullopt);
  EXPECT_TRUE(same_metric("vllm:prefix_cache_hits", "vllm:prefix_cache_hits_total"));
  EXPECT_FALSE(same_metric("a", "b"));
}

TEST(PrometheusTest, GivesTheSameForEveryLineEnd) {
  std::string crlf;
  for (char c : kVllm) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(parse_prometheus(crlf)->size(), 8u);
  EXPECT_EQ(parse_prometheus("")->size(), 0u);
  EXPECT_EQ(parse_prometheus("a 1")->size(), 1u);
}

TEST(PrometheusTest, NamesTheBrokenLine) {
  for (const char* line :
       {"1a 2", "a", "a{", "a{b} 1", "a{b=c} 1", "a{b=\"c} 1", "a{b=\"\\x\"} 1",
        "a{b=\"c\" d=\"e\"} 1", "a{b=\"c\"}", "a one", "a 1 x", "a 1 2 3", "a --1", "{} 1"}) {
    const auto samples = parse_prometheus("# c\nok 1\n" + std::string(line) + "\n");
    ASSERT_FALSE(samples.has_value()) << line;
    EXPECT_EQ(samples.error().kind, Kind::kProtocol);
    EXPECT_TRUE(samples.error().detail.starts_with("metrics line 3: ")) << samples.error().detail;
  }
}

}  // namespace
}  // namespace anvil::wire
