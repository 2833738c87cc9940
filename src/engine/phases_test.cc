#include "engine/phases.h"

#include <gtest/gtest.h>

#include "engine/test_recipe.h"

namespace anvil::engine {
namespace {

std::vector<Phase> phases_of(const char* table, const std::vector<std::string>& lines) {
  PhaseTracker tracker(shipped_table(table).shared_rules(), 1000);
  Nanos now = 1000;
  for (const std::string& line : lines) tracker.feed(line, ++now);
  return tracker.phases();
}

std::string names(const std::vector<Phase>& phases) {
  std::string out;
  for (const Phase& phase : phases) out += (out.empty() ? "" : " ") + phase.name;
  return out;
}

TEST(Phases, Llama) {
  const auto phases = phases_of(
      "llama.cpp",
      {"0.00.003.840 I srv          init: build_info: b0-unknown",
       "0.00.005.770 I srv    load_model: loading model '/models/gemma.gguf'",
       "0.01.738.910 I cmn          init: llama threadpool init, n_threads = 1",
       "0.01.805.991 I srv    load_model: initializing, n_slots = 2, n_ctx_slot = 4096, kv_unified "
       "= 'false'",
       "0.01.807.776 I srv          init: listening on http://127.0.0.1:18977"});
  EXPECT_EQ(names(phases), "start weights context listening");
  EXPECT_EQ(phases[2].values, Json::parse(R"({"threads":1,"slots":2,"slot_tokens":4096})"));
  EXPECT_EQ(phases[1].at, 1002);
}

TEST(Phases, VllmOnGpus) {
  const auto phases = phases_of(
      "vllm-0.32",
      {"(APIServer pid=1) INFO 07-29 14:43:00 [api_server.py:1] vLLM API server version 0.25.0",
       "(APIServer pid=1) INFO 07-29 14:43:00 [utils.py:286] non-default args: {'max_num_seqs': 8}",
       "(EngineCore pid=2) INFO 07-29 14:43:01 [core.py:58] Initializing a V1 LLM engine (v0.25.0) "
       "with config: model='m'",
       "(Worker_TP0 pid=3) INFO 07-29 14:43:02 [gpu_model_runner.py:1] Starting to load model m...",
       "(Worker_TP1 pid=4) INFO 07-29 14:43:02 [gpu_model_runner.py:1] Starting to load model m...",
       "(Worker_TP0 pid=3) INFO 07-29 14:43:30 [gpu_model_runner.py:1] Model loading took 35.31 "
       "GiB "
       "memory and 28.2 seconds",
       "(Worker_TP1 pid=4) INFO 07-29 14:43:31 [gpu_model_runner.py:1] Model loading took 35.31 "
       "GiB "
       "memory and 28.9 seconds",
       "(Worker_TP0 pid=3) INFO 07-29 14:43:33 [gpu_worker.py:1] Available KV cache memory: 51.93 "
       "GiB",
       "(Worker_TP1 pid=4) INFO 07-29 14:43:33 [gpu_worker.py:1] Available KV cache memory: 51.80 "
       "GiB",
       "(EngineCore pid=357) INFO 07-29 14:43:33 [kv_cache_utils.py:2181] GPU KV cache size: "
       "5,277,426 tokens",
       "(EngineCore pid=357) INFO 07-29 14:43:33 [kv_cache_utils.py:2186] Maximum concurrency for "
       "262,144 tokens per request: 20.13x",
       "(Worker_TP0 pid=3) INFO 07-29 14:43:40 [gpu_model_runner.py:1] Graph capturing finished in "
       "4 secs, took 0.73 GiB",
       "INFO:     Application startup complete."});
  EXPECT_EQ(names(phases), "start engine weights profile kv graphs listening");
  EXPECT_EQ(phases[0].values.at("engine_version"), "0.25.0");
  EXPECT_EQ(phases[0].values.at("effective_args"), "{'max_num_seqs': 8}");
  EXPECT_EQ(phases[3].values, Json::parse(R"({"weights_gib":35.31,"load_seconds":28.2})"));
  EXPECT_EQ(phases[4].values,
            Json::parse(R"({"kv_available_gib":51.8,"kv_tokens":5277426,"kv_context":262144,
                            "kv_concurrency":20.13})"));
  EXPECT_EQ(phases[5].values, Json::parse(R"({"graph_seconds":4,"graph_gib":0.73})"));
}

TEST(Phases, VllmOnCpus) {
  const auto phases = phases_of(
      "vllm-0.32",
      {"(APIServer pid=12087) INFO 11-30 17:44:43 [api_utils.py:347]  ▄▄ ▄█ █     █     █ ▀▄▀ █  "
       "version 0.32.0",
       "(EngineCore pid=13429) INFO 11-30 17:45:58 [core.py:133] Initializing a V1 LLM engine "
       "(v0.32.0) with config: model='/m'",
       "(Worker pid=13744) INFO 11-30 17:46:31 [cpu_model_runner.py:68] Starting to load model /m",
       "(Worker pid=13744) INFO 11-30 17:46:35 [default_loader.py:501] Loading weights took 3.95 "
       "seconds",
       "(EngineCore pid=13429) INFO 11-30 17:46:37 [kv_cache_utils.py:2327] CPU KV cache size: "
       "163,271 tokens, Maximum concurrency for 4,096 tokens per request: 39.86x",
       "(EngineCore pid=13429) INFO 11-30 17:46:45 [core.py:402] init engine (profile, create kv "
       "cache, warmup model) took 8.88 s",
       "(APIServer pid=12087) INFO 11-30 17:46:54 [entry.py:140] Starting vLLM server on "
       "http://127.0.0.1:18978"});
  EXPECT_EQ(names(phases), "start engine weights kv engine-ready listening");
  EXPECT_EQ(phases[0].values.at("engine_version"), "0.32.0");
  EXPECT_EQ(phases[3].values.at("kv_tokens"), 163271);
  EXPECT_EQ(phases[3].values.at("kv_concurrency"), 39.86);
}

TEST(Phases, TheMemoryWaterfallIsKept) {
  const auto phases = phases_of(
      "vllm-0.32",
      {"Free memory on device (93.87/95.59 GiB) on startup. Desired GPU memory utilization is "
       "(0.88, 84.12 GiB). Actual usage is 66.17 GiB for weight, 1.17 GiB for peak activation, "
       "0.15 "
       "GiB for non-torch memory, and 0.05 GiB for CUDAGraph memory. Replace "
       "gpu_memory_utilization "
       "config with --kv-cache-memory=1",
       "Chunked prefill is enabled with max_num_batched_tokens=8192.",
       "Estimated CUDA graph memory: 0.52 GiB total", "Add 2 padding layers, may waste at most"});
  const Json& values = phases[0].values;
  EXPECT_EQ(values.at("weight_gib"), 66.17);
  EXPECT_EQ(values.at("activation_gib"), 1.17);
  EXPECT_EQ(values.at("effective_batched_tokens"), 8192);
  EXPECT_EQ(values.at("graph_estimate_gib"), 0.52);
  EXPECT_EQ(values.at("padding_layers"), 2);
}

TEST(Phases, Sglang) {
  const auto phases = phases_of(
      "sglang",
      {"[2026-08-01 10:00:00 TP0] Load weight begin. avail mem=92.10 GB",
       "[2026-08-01 10:01:00 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 406540, K "
       "size: 10 GB",
       "[2026-08-01 10:01:00 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 5000",
       "max_total_num_tokens=406540, chunked_prefill_size=8192, max_prefill_tokens=16384, "
       "max_running_requests=48, context_len=131072, available_gpu_mem=3.1 GB",
       "The server is fired up and ready to roll!"});
  EXPECT_EQ(names(phases), "start weights kv listening");
  EXPECT_EQ(phases[2].values.at("kv_tokens"), 5000);
  EXPECT_EQ(phases[2].values.at("context_len"), 131072);
}

}  // namespace
}  // namespace anvil::engine
