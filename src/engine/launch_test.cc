#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "engine/interface_table.h"
#include "engine/runner.h"
#include "engine/test_recipe.h"

namespace anvil::engine {
namespace {

LaunchSpec launch(const recipe::Recipe& recipe, const LaunchOptions& options = {}) {
  const auto table = InterfaceTable::for_recipe(recipe);
  EXPECT_TRUE(table);
  auto spec = build_launch(recipe, *table, options);
  EXPECT_TRUE(spec) << to_string(spec.error());
  return spec ? *spec : LaunchSpec{};
}

std::string command(const LaunchSpec& spec) {
  return base::join(spec.argv, " ");
}

std::map<std::string, std::string> environment(const LaunchSpec& spec) {
  return {spec.env.begin(), spec.env.end()};
}

std::string launch_error(const recipe::Recipe& recipe) {
  const auto table = InterfaceTable::for_recipe(recipe);
  const auto spec = build_launch(recipe, *table);
  return spec ? "" : to_string(spec.error());
}

TEST(Launch, TheQuickstartRecipe) {
  LaunchOptions options;
  options.port = 18080;
  options.model_path = "/models/gemma.gguf";
  options.chat_template = "/recipes/plain.jinja";
  const LaunchSpec spec = launch(shipped_recipe(ANVIL_SOURCE_DIR, "gemma-3-270m"), options);
  EXPECT_EQ(command(spec),
            "llama-server --metrics --jinja --no-webui -m /models/gemma.gguf --host 127.0.0.1 "
            "--port 18080 --alias gemma-3-270m -c 16384 -np 2 -t 1 --chat-template-file "
            "/recipes/plain.jinja");
  EXPECT_TRUE(spec.env.empty());
  EXPECT_EQ(spec.base_url, "http://127.0.0.1:18080");
  EXPECT_EQ(spec.start_ceiling, 120 * kSecond);
  EXPECT_EQ(spec.progress_limit, 60 * kSecond);
  EXPECT_EQ(base::join(spec.version_command, " "), "llama-server --version");
}

// The environment that the image's launcher was really given for the published runs.
const std::map<std::string, std::string> kCommonR16 = {
    {"CUDA_VISIBLE_DEVICES", "0,1"},
    {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
    {"VLLM_WSL2_ENABLE_PIN_MEMORY", "1"},
    {"NCCL_IB_DISABLE", "1"},
    {"NCCL_P2P_DISABLE", "1"},
    {"NCCL_CUMEM_ENABLE", "0"},
    {"NCCL_CUMEM_HOST_ENABLE", "0"},
    {"NCCL_DEBUG", "INFO"},
    {"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:False"},
    {"BACKEND", "b12x-a8"},
    {"TP_SIZE", "2"},
    {"DCP_SIZE", "1"},
    {"MAX_NUM_SEQS", "8"},
    {"MAX_MODEL_LEN", "131072"},
    {"MAX_NUM_BATCHED_TOKENS", "8192"},
    {"GPU_MEMORY_UTILIZATION", "0.975"},
    {"LOAD_FORMAT", "instanttensor"},
    {"INSTANTTENSOR_BACKEND", "BUFFERED"},
    {"KV_OFFLOADING_SIZE", "0"},
    {"MODEL_PATH",
     "/root/.cache/huggingface/hub/models--deepseek-ai--DeepSeek-V4-Flash-0731/snapshots/"
     "9e165c30e2704aec5d9d593cce3eebd58bbef1cb"},
};

TEST(Launch, TheSpeculatingImageLine) {
  LaunchOptions options;
  options.platform = "wsl2";
  const LaunchSpec spec =
      launch(shipped_recipe(ANVIL_SOURCE_DIR, "deepseek-v4-flash-r16-dspark5-128k"), options);
  std::map<std::string, std::string> expected = kCommonR16;
  expected["PORT"] = "39062";
  expected["MODE"] = "dspark";
  expected["DSPARK_DEPTH_MODE"] = "fixed";
  expected["DSPARK_TOKENS"] = "5";
  expected["DRAFT_SAMPLE_METHOD"] = "probabilistic";
  expected["REJECTION_SAMPLE_METHOD"] = "standard";
  expected["SPEC_MODEL_PATH"] = expected["MODEL_PATH"];
  expected["SERVED_MODEL_NAME"] = "deepseek-v4-flash-0731-r16-b12x-dspark5-tp2-128k";
  EXPECT_EQ(environment(spec), expected);
  EXPECT_EQ(command(spec), "/usr/local/bin/serve-ds4-flash.sh");
}

TEST(Launch, TheControlOfTheImageLine) {
  LaunchOptions options;
  options.platform = "wsl2";
  const LaunchSpec spec =
      launch(shipped_recipe(ANVIL_SOURCE_DIR, "deepseek-v4-flash-r16-nospec-128k"), options);
  std::map<std::string, std::string> expected = kCommonR16;
  expected["PORT"] = "39063";
  expected["MODE"] = "dspark-mtp0";
  expected["SERVED_MODEL_NAME"] = "deepseek-v4-flash-0731-r16-b12x-nospec-tp2-128k";
  EXPECT_EQ(environment(spec), expected);
}

TEST(Launch, ThePlatformOverlayIsAppliedOnlyThere) {
  const LaunchSpec bare =
      launch(shipped_recipe(ANVIL_SOURCE_DIR, "deepseek-v4-flash-r16-dspark5-128k"));
  EXPECT_FALSE(environment(bare).contains("NCCL_P2P_DISABLE"));
  EXPECT_TRUE(environment(bare).contains("CUDA_DEVICE_ORDER"));
}

TEST(Launch, VllmFlagsWithOneJsonArgument) {
  const recipe::Recipe recipe = test_recipe(
      "vllm",
      "context_tokens = 4096\nmax_sequences = 8\nbatched_tokens = 2048\nkv_dtype = \"fp8-e4m3\"\n"
      "memory_utilisation = 0.9\nexpert_parallel = true\nprefix_cache = false\nseed = 7",
      "port = 8000\nmodel_path = \"/m\"\nextra_args = [\"--enforce-eager\"]\n"
      "[speculation]\nmethod = \"ngram\"\ndepth = 3\nprompt_lookup_max = 4\n"
      "[sampling]\ntemperature = 0.5\ntop_k = 20\n[loader]\noffline = true\n");
  const LaunchSpec spec = launch(recipe);
  EXPECT_EQ(command(spec),
            "vllm serve /m --host 127.0.0.1 --port 8000 --served-model-name served "
            "--max-model-len 4096 --max-num-seqs 8 --max-num-batched-tokens 2048 "
            "--gpu-memory-utilization 0.9 --enable-expert-parallel --kv-cache-dtype fp8_e4m3 "
            "--no-enable-prefix-caching --seed 7 --override-generation-config "
            "{\"temperature\":0.5,\"top_k\":20} --speculative-config "
            "{\"method\":\"ngram\",\"num_speculative_tokens\":3,\"prompt_lookup_max\":4} "
            "--enforce-eager");
  EXPECT_EQ(environment(spec), (std::map<std::string, std::string>{{"HF_HUB_OFFLINE", "1"}}));
}

TEST(Launch, ARepositoryKeepsItsRevision) {
  const std::string commit(40, 'a');
  const std::string text =
      "schema = \"anvil/recipe/v1\"\nname = \"t\"\n[model]\nrepo = \"o/n\"\nrevision = \"" +
      commit +
      "\"\n[engine]\nkind = \"vllm\"\n[serving]\ncontext_tokens = 4096\nmax_sequences = 1\n"
      "[launch]\nrunner = \"process\"\nport = 1\n";
  const auto loaded = recipe::parse_recipe(text, "t.toml");
  ASSERT_TRUE(loaded.ok());
  EXPECT_NE(command(launch(*loaded.value))
                .find("serve o/n --host 127.0.0.1 --port 1 --revision " + commit),
            std::string::npos);
}

TEST(Launch, SglangFlags) {
  const LaunchSpec spec =
      launch(test_recipe("sglang",
                         "context_tokens = 8192\nmax_sequences = 4\nprefix_cache = false\n"
                         "tensor_parallel = 2",
                         "port = 30000\nmodel_path = \"/m\"\n[hardware]\ngpus = "
                         "2\n[speculation]\nmethod = \"dspark\"\ndepth = 5\n",
                         ""));
  EXPECT_EQ(command(spec),
            "python3 -m sglang.launch_server --enable-metrics --model-path /m --host 127.0.0.1 "
            "--port 30000 --served-model-name served --context-length 8192 "
            "--max-running-requests 4 --tp-size 2 --disable-radix-cache --speculative-algorithm "
            "DSPARK --speculative-dspark-block-size 5");
}

TEST(Launch, SecretsStayReferences) {
  const LaunchSpec spec = launch(test_recipe(
      "llama.cpp", "context_tokens = 4096\nmax_sequences = 1",
      "port = 1\napi_key = \"env:MY_KEY\"\n[launch.secrets]\nHF_TOKEN = \"file:/run/token\"\n"));
  EXPECT_EQ(spec.secret_env,
            (std::vector<std::pair<std::string, std::string>>{{"HF_TOKEN", "file:/run/token"},
                                                              {"LLAMA_API_KEY", "env:MY_KEY"}}));
  EXPECT_EQ(to_json(spec)["secrets"],
            (Json{{"HF_TOKEN", "file:/run/token"}, {"LLAMA_API_KEY", "env:MY_KEY"}}));
  EXPECT_NE(launch_error(test_recipe("sglang", "context_tokens = 4096\nmax_sequences = 1",
                                     "api_key = \"env:MY_KEY\"\n"))
                .find("command line"),
            std::string::npos);
}

TEST(Launch, AnExternalServerIsOnlyAnAddress) {
  const LaunchSpec spec = launch(shipped_recipe(ANVIL_SOURCE_DIR, "gemma-3-270m-vllm-cpu"));
  EXPECT_EQ(spec.base_url, "http://127.0.0.1:18081");
  EXPECT_TRUE(spec.argv.empty());
}

TEST(Launch, WhatTheLineCannotSayIsAnError) {
  EXPECT_NE(launch_error(test_recipe("llama.cpp",
                                     "context_tokens = 4096\nmax_sequences = 1\n"
                                     "kv_dtype = \"fp8\""))
                .find("serving.kv_dtype"),
            std::string::npos);
  EXPECT_NE(
      launch_error(test_recipe("llama.cpp",
                               "context_tokens = 4096\nmax_sequences = 1\ntensor_parallel = 2",
                               "[hardware]\ngpus = 2\n"))
          .find("cannot have 2"),
      std::string::npos);
}

struct CheckCase {
  const char* what;
  const char* kind;
  const char* serving;
  const char* more;
  const char* expected;  // part of the message, "" when there is nothing to say
  bool error;
};

class TableCheck : public testing::TestWithParam<CheckCase> {};

TEST_P(TableCheck, Says) {
  const CheckCase& c = GetParam();
  const recipe::Recipe recipe = test_recipe(c.kind, c.serving, c.more);
  const auto diagnostics = InterfaceTable::for_recipe(recipe)->check(recipe);
  std::string all;
  for (const auto& diagnostic : diagnostics) all += to_string(diagnostic) + "\n";
  if (std::string_view(c.expected).empty()) {
    EXPECT_EQ(all, "");
  } else {
    EXPECT_NE(all.find(c.expected), std::string::npos) << all;
    EXPECT_EQ(recipe::has_errors(diagnostics), c.error) << all;
  }
}

constexpr const char* kPlain = "context_tokens = 4096\nmax_sequences = 2";
const CheckCase kChecks[] = {
    {"nothing", "vllm", kPlain, "extra_args = [\"--enforce-eager\"]\n", "", false},
    {"contradiction", "vllm", kPlain, "extra_args = [\"--max-model-len\", \"8192\"]\n",
     "contradicts serving.context_tokens", true},
    {"with equals", "vllm", kPlain, "extra_args = [\"--max-model-len=8192\"]\n",
     "contradicts serving.context_tokens", true},
    {"with underscores", "vllm", kPlain, "extra_args = [\"--max_num_seqs=3\"]\n",
     "contradicts serving.max_sequences", true},
    {"repetition", "vllm", kPlain, "extra_args = [\"--max-num-seqs\", \"2\"]\n",
     "repeats serving.max_sequences", false},
    {"untyped", "vllm", kPlain, "extra_args = [\"-tp\", \"2\"]\n", "set serving.tensor_parallel",
     false},
    {"bool pair", "vllm", "context_tokens = 4096\nmax_sequences = 2\nprefix_cache = true",
     "extra_args = [\"--no-enable-prefix-caching\"]\n", "contradicts serving.prefix_cache", true},
    {"json argument", "vllm", kPlain,
     "extra_args = ['--speculative-config={\"method\":\"ngram\",\"num_speculative_tokens\":4}']\n"
     "[speculation]\nmethod = \"ngram\"\ndepth = 3\nprompt_lookup_max = 2\n",
     "contradicts speculation.method", true},
    {"json key", "vllm", kPlain,
     "extra_args = [\"--speculative-config.num_speculative_tokens=4\"]\n"
     "[speculation]\nmethod = \"ngram\"\ndepth = 3\nprompt_lookup_max = 2\n",
     "contradicts speculation.method", true},
    {"context of all slots", "llama.cpp", kPlain, "extra_args = [\"--ctx-size\", \"4096\"]\n",
     "gives \"-c 8192\"", true},
    {"slots always said", "llama.cpp", kPlain, "extra_args = [\"--parallel\", \"4\"]\n",
     "contradicts serving.max_sequences", true},
    {"negative value", "llama.cpp", kPlain, "extra_args = [\"--seed\", \"-1\"]\n",
     "set serving.seed", false},
    {"rounded slot", "llama.cpp", "context_tokens = 4000\nmax_sequences = 2", "",
     "rounds 4000 up to 4096", true},
    {"too much context", "llama.cpp", "context_tokens = 16777216\nmax_sequences = 4096", "",
     "more than llama.cpp can take", true},
    {"no such setting", "llama.cpp",
     "context_tokens = 4096\nmax_sequences = 2\nmemory_utilisation = 0.9", "",
     "llama.cpp has no setting for this", true},
    {"no effect", "llama.cpp", kPlain,
     "[speculation]\nmethod = \"mtp\"\ndepth = 2\n[speculation.draft]\npath = \"/d\"\n",
     "no effect", false},
    {"variable", "vllm", kPlain, "[launch.env]\nHF_HUB_OFFLINE = \"1\"\n", "set loader.offline",
     false},
    {"unknown effort", "sglang",
     "context_tokens = 4096\nmax_sequences = 2\nefforts = [\"low\", \"xhigh\"]", "",
     "does not know the effort \"xhigh\"", true},
    {"anything goes outside", "external", kPlain, "", "", false},
};
INSTANTIATE_TEST_SUITE_P(Cases, TableCheck, testing::ValuesIn(kChecks));

TEST(TableCheckEnvironment, AnImageVariableThatContradicts) {
  const recipe::Recipe recipe =
      test_recipe("vllm",
                  "context_tokens = 4096\nmax_sequences = 2\nbatched_tokens = 1024\n"
                  "memory_utilisation = 0.9",
                  "[launch.env]\nMAX_NUM_SEQS = \"4\"\nTP_SIZE = \"1\"\n[platform.wsl2.env]\n"
                  "MODE = \"dspark\"\n",
                  "interface = \"vllm-r16\"");
  std::string all;
  for (const auto& diagnostic : InterfaceTable::for_recipe(recipe)->check(recipe)) {
    all += to_string(diagnostic) + "\n";
  }
  EXPECT_NE(all.find("MAX_NUM_SEQS = 4 contradicts serving.max_sequences, which gives 2"),
            std::string::npos)
      << all;
  EXPECT_NE(all.find("repeats serving.tensor_parallel"), std::string::npos) << all;
  EXPECT_NE(all.find("MODE = dspark contradicts speculation.method, which gives dspark-mtp0"),
            std::string::npos)
      << all;
}

TEST(TableCheckShipped, ShippedRecipesHaveNothingToSay) {
  for (const char* name :
       {"gemma-3-270m", "gemma-3-270m-vllm-cpu", "deepseek-v4-flash-r16-dspark5-128k",
        "deepseek-v4-flash-r16-nospec-128k"}) {
    const recipe::Recipe recipe = shipped_recipe(ANVIL_SOURCE_DIR, name);
    for (const auto& diagnostic : InterfaceTable::for_recipe(recipe)->check(recipe)) {
      ADD_FAILURE() << to_string(diagnostic);
    }
  }
}

}  // namespace
}  // namespace anvil::engine
