#include "engine/counters.h"

#include <gtest/gtest.h>

#include "engine/test_recipe.h"
#include "engine/test_server.h"

namespace anvil::engine {
namespace {

constexpr const char* kVllm = R"(# HELP vllm:num_requests_running Number of requests
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="gemma"} 1.0
vllm:num_requests_running{engine="1",model_name="gemma"} 2.0
vllm:num_requests_waiting{engine="0",model_name="gemma"} 0.0
vllm:kv_cache_usage_perc{engine="0",model_name="gemma"} 0.25
vllm:prompt_tokens_total{engine="0",model_name="gemma"} 1200.0
vllm:prompt_tokens_created{engine="0",model_name="gemma"} 1.7e+09
vllm:prefix_cache_hits_total{engine="0",model_name="gemma"} 64.0
vllm:generation_tokens_total{engine="0",model_name="gemma"} 300.0
vllm:num_preemptions_total{engine="0",model_name="gemma"} 0.0
vllm:spec_decode_num_drafts_total{engine="0"} 100.0
vllm:spec_decode_num_draft_tokens_total{engine="0"} 300.0
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 150.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 80.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="1"} 50.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="2"} 20.0
)";

TEST(Counters, VllmInNormalForm) {
  const auto values = normal_counters(shipped_table("vllm-0.32"), kVllm);
  ASSERT_TRUE(values) << to_string(values.error());
  EXPECT_EQ(*values, Json::parse(R"({"running":3,"waiting":0,"kv_used_ratio":0.25,
      "prompt_tokens":1200,"cached_tokens":64,"output_tokens":300,"drafts":100,"draft_tokens":300,
      "accepted_tokens":150,"accepted_per_position":[80,50,20],"preemptions":0})"));
  EXPECT_EQ(*normal_counters(shipped_table("vllm-r16"), kVllm), *values);
}

TEST(Counters, LlamaInNormalForm) {
  const auto values = normal_counters(shipped_table("llama.cpp"),
                                      "llamacpp:prompt_tokens_total 10\n"
                                      "llamacpp:prompt_tokens_cached_total 3\n"
                                      "llamacpp:tokens_predicted_total 7\n"
                                      "llamacpp:requests_processing 1\n"
                                      "llamacpp:requests_deferred 0\n");
  ASSERT_TRUE(values);
  EXPECT_EQ(*values, Json::parse(R"({"running":1,"waiting":0,"kv_used_ratio":null,
      "prompt_tokens":10,"cached_tokens":3,"output_tokens":7,"drafts":null,"draft_tokens":null,
      "accepted_tokens":null,"accepted_per_position":null,"preemptions":null})"));
}

TEST(Counters, SglangInNormalForm) {
  const auto values = normal_counters(shipped_table("sglang"),
                                      "sglang:cached_tokens_total{cache_source=\"device\"} 5\n"
                                      "sglang:cached_tokens_total{cache_source=\"host\"} 6\n"
                                      "sglang:token_usage 0.5\nsglang:num_running_reqs NaN\n");
  ASSERT_TRUE(values);
  EXPECT_EQ((*values)["cached_tokens"], 11);
  EXPECT_EQ((*values)["kv_used_ratio"], 0.5);
}

TEST(Counters, AreReadFromTheEngine) {
  const RouteServer server({{"GET /metrics", kVllm}});
  const Nanos before = mono_now();
  const auto counters = read_counters(shipped_table("vllm-0.32"), server.url(), "");
  ASSERT_TRUE(counters) << to_string(counters.error());
  EXPECT_GE(counters->at, before);
  EXPECT_LE(counters->at, mono_now());
  EXPECT_EQ(counters->values["prompt_tokens"], 1200);
  const auto none = read_counters(shipped_table("openai"), server.url(), "");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, Kind::kUnsupported);
  const RouteServer off{};
  EXPECT_EQ(read_counters(shipped_table("vllm-0.32"), off.url(), "").error().kind,
            Kind::kHttpStatus);
}

}  // namespace
}  // namespace anvil::engine
