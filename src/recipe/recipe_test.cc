#include "recipe/recipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "recipe/fields.h"
#include "recipe/toml_document.h"

namespace anvil::recipe {
namespace {

// A sound recipe on two cards, in pieces that tests replace.
const std::string kTop = "schema = 'anvil/recipe/v1'\nname = 'sample'\n";
const std::string kModel =
    "[model]\nrepo = 'o/n'\nrevision = '9e165c30e2704aec5d9d593cce3eebd58bbef1cb'\n";
const std::string kDigest = std::string(64, 'a');
const std::string kEngine = "[engine]\nkind = 'vllm'\nimage = 'x@sha256:" + kDigest + "'\n";
const std::string kHardware = "[hardware]\ngpus = 2\n";
const std::string kServing =
    "[serving]\ncontext_tokens = 4096\nmax_sequences = 4\ntensor_parallel = 2\n";
const std::string kLaunch = "[launch]\nrunner = 'docker'\n";

std::string sound() {
  return kTop + kModel + kEngine + kHardware + kServing + kLaunch;
}

std::string messages(const std::vector<Diagnostic>& diagnostics) {
  std::string out;
  for (const auto& diagnostic : diagnostics) out += to_string(diagnostic) + "\n";
  return out;
}

Recipe good(const std::string& text) {
  auto loaded = parse_recipe(text, "f.toml");
  EXPECT_TRUE(loaded.ok()) << messages(loaded.diagnostics);
  return loaded.ok() ? *loaded.value : Recipe();
}

TEST(Recipe, ValuesDefaultsAndPlaces) {
  const Recipe recipe = good(sound());
  EXPECT_EQ(recipe.name(), "sample");
  EXPECT_EQ(recipe.path(), "f.toml");
  EXPECT_EQ(recipe.integer("serving.context_tokens"), 4096);
  EXPECT_EQ(recipe.text("speculation.method"), "none");
  EXPECT_FALSE(recipe.has("speculation.method"));
  EXPECT_EQ(recipe.number("launch.stop_grace_s"), 20);
  EXPECT_TRUE(recipe.flag("serving.chunked_prefill"));
  EXPECT_TRUE(recipe.list("serving.efforts").empty());
  EXPECT_TRUE(recipe.at("serving.kv_dtype").is_null());
  EXPECT_TRUE(recipe.at("no.such").is_null());
  EXPECT_EQ(recipe.integer("serving.kv_dtype", 7), 7);
  EXPECT_EQ(recipe.position("serving.context_tokens").line, 12);
  EXPECT_EQ(recipe.digest().size(), 64u);
  EXPECT_TRUE(recipe.unpinned().empty());
}

TEST(Recipe, DigestIgnoresLabelsDefaultsAndForm) {
  const std::string digest = good(sound()).digest();
  const std::string same[] = {
      "# a comment\n" + sound(),
      kTop + kLaunch + kServing + kHardware + kEngine + kModel,
      sound() + "port = 1234\nstop_grace_s = 3\n",
      sound() + "host = '127.0.0.1'\nprivileged = false\n",
      sound() + "[speculation]\nmethod = 'none'\ndepth = 0\n",
      sound() + "[sampling]\n",
      sound() + "[[source]]\nurl = 'u'\nlabel = 'local'\ndate = 2026-08-01\n",
      "schema = \"anvil/recipe/v1\"\nname = \"other\"\nnotes = 'n'\nrole = 'control'\n" + kModel +
          "licence = 'MIT'\nserved_name = 'x'\n" + kEngine + kHardware + kServing + kLaunch,
      kTop + kModel + kEngine + kHardware +
          "[serving]\ncontext_tokens = 4_096\nmax_sequences = 0x4\ntensor_parallel = 2\n"
          "expert_parallel = false\n" +
          kLaunch,
  };
  for (const auto& text : same) EXPECT_EQ(good(text).digest(), digest) << text;
  const std::string others[] = {
      sound() + "host = '::1'\n",
      sound() + "[launch.env]\nA = '1'\n",
      sound() + "[sampling]\ntemperature = 0\n",
      sound() + "[platform.wsl2.env]\nA = '1'\n",
  };
  for (const auto& text : others) EXPECT_NE(good(text).digest(), digest) << text;
}

TEST(Recipe, NumbersAreOneValueHoweverWritten) {
  const std::string digest = good(sound() + "[sampling]\ntemperature = 1\n").digest();
  EXPECT_EQ(good(sound() + "[sampling]\ntemperature = 1.0\n").digest(), digest);
  EXPECT_EQ(good(sound() + "[sampling]\ntemperature = 1e0\n").digest(), digest);
}

TEST(Recipe, ArtifactNamesAreLabelsOnceHashed) {
  const auto with = [](const std::string& artifact) {
    return good(sound() + "[[model.artifact]]\n" + artifact).digest();
  };
  const std::string hash = "sha256 = '" + kDigest + "'\n";
  EXPECT_EQ(with("file = 'a.gguf'\n" + hash), with("file = '/elsewhere/b.gguf'\n" + hash));
  EXPECT_NE(with("file = 'a.gguf'\n"), with("file = 'b.gguf'\n"));
}

// Writes a document as TOML: leaves as dotted keys in random order at the top, with random comments
// and white space; arrays of tables behind them.
void flatten_toml(const Json& value, const std::string& path, std::vector<std::string>& leaves,
                  std::vector<std::string>& arrays) {
  for (const auto& [key, below] : value.items()) {
    const std::string where = path_join(path, key);
    if (below.is_object()) {
      flatten_toml(below, where, leaves, arrays);
    } else if (below.is_array() && !below.empty() && below[0].is_object()) {
      std::string text;
      for (const auto& element : below) {
        std::vector<std::string> inner, none;
        flatten_toml(element, "", inner, none);
        EXPECT_TRUE(none.empty());
        text += "[[" + where + "]]\n";
        for (const auto& line : inner) text += line;
      }
      arrays.push_back(text);
    } else {
      leaves.push_back(where + " = " + below.dump() + "\n");
    }
  }
}

TEST(Recipe, DigestSurvivesEveryPermutation) {
  std::mt19937 random(20261130);
  for (const char* name :
       {"gemma-3-270m", "gemma-3-270m-vllm-cpu", "deepseek-v4-flash-r16-dspark5-128k"}) {
    const auto original = load_recipe(std::string(ANVIL_SOURCE_DIR) + "/recipes/" + name + ".toml");
    ASSERT_TRUE(original.ok()) << messages(original.diagnostics);
    const Json defaults = recipe_schema().with_defaults(original.value->document());
    for (int round = 0; round < 40; ++round) {
      std::vector<std::string> leaves, arrays;
      flatten_toml(round % 2 ? defaults : original.value->document(), "", leaves, arrays);
      std::shuffle(leaves.begin(), leaves.end(), random);
      std::shuffle(arrays.begin(), arrays.end(), random);
      std::string text;
      for (const auto& line : leaves) {
        if (random() % 3 == 0) text += "# comment " + std::to_string(random()) + "\n";
        text += std::string(random() % 4, ' ') + line;
        if (random() % 3 == 0) text += "\n\t\n";
      }
      for (const auto& array : arrays) text += array;
      const auto again = parse_recipe(text, "shuffled.toml");
      ASSERT_TRUE(again.ok()) << messages(again.diagnostics) << text;
      ASSERT_EQ(again.value->digest(), original.value->digest()) << text;
    }
  }
}

TEST(Recipe, Unpinned) {
  const auto unpinned = [](const std::string& text) { return good(text).unpinned(); };
  using Names = std::vector<std::string>;
  const std::string loose = "[model]\nrepo = 'o/n'\n";
  EXPECT_EQ(unpinned(kTop + loose + kEngine + kHardware + kServing + kLaunch),
            Names{"model.revision"});
  EXPECT_TRUE(unpinned(kTop + loose + "[[model.artifact]]\nfile = 'a'\nsha256 = '" + kDigest +
                       "'\n" + kEngine + kHardware + kServing + kLaunch)
                  .empty());
  EXPECT_EQ(unpinned(kTop + loose + "[[model.artifact]]\nfile = 'a'\n" + kEngine + kHardware +
                     kServing + kLaunch),
            (Names{"model.artifact[0].sha256", "model.revision"}));
  EXPECT_EQ(unpinned(kTop + kModel + "[engine]\nkind = 'vllm'\nimage = 'x:latest'\n" + kHardware +
                     kServing + kLaunch),
            Names{"engine.image"});
  EXPECT_EQ(unpinned(kTop + kModel + "[engine]\nkind = 'vllm'\n[[engine.patch]]\nname = 'p'\n" +
                     kHardware + kServing + "[launch]\nrunner = 'process'\n"),
            (Names{"engine.package_sha256", "engine.patch[0].sha256"}));
  EXPECT_EQ(unpinned(sound() + "[speculation]\nmethod = 'draft-model'\ndepth = 2\n"
                               "[speculation.draft]\nrepo = 'd/d'\n"),
            Names{"speculation.draft.revision"});
  EXPECT_EQ(unpinned(kTop + kModel + "chat_template = 't.jinja'\n" + kEngine + kHardware +
                     kServing + kLaunch),
            Names{"model.chat_template_sha256"});
}

// One change to the sound recipe, the key that must be named, and words of the message.
struct Nonsense {
  std::string text;
  std::string key;
  std::string words;
  bool warning = false;
};

TEST(Recipe, Sense) {
  const auto serving = [](const std::string& more) {
    return kTop + kModel + kEngine + kHardware + kServing + more + kLaunch;
  };
  const auto launch = [](const std::string& more) { return sound() + more; };
  const auto speculation = [](const std::string& lines) {
    return sound() + "[speculation]\n" + lines;
  };
  const auto engine = [](const std::string& lines, const std::string& start) {
    return kTop + kModel + "[engine]\n" + lines + kHardware + kServing + "[launch]\n" + start;
  };
  const std::string llama = kTop + "[model]\nrepo = 'o/n'\n[engine]\nkind = 'llama.cpp'\n" +
                            "[serving]\ncontext_tokens = 512\nmax_sequences = 1\n";
  const std::string process = "[launch]\nrunner = 'process'\n";
  const std::string path_given = process + "model_path = 'm'\n";
  const Nonsense cases[] = {
      // speculation
      {speculation("depth = 5\n"), "speculation.depth", "the method is \"none\""},
      {speculation("method = 'dspark'\n"), "speculation.depth", "with 0 draft tokens"},
      {speculation("draft_sampling = 'greedy'\n"), "speculation.draft_sampling", "no meaning"},
      {speculation("rejection_sampling = 'strict'\n"), "speculation.rejection_sampling",
       "no meaning"},
      {speculation("depth_mode = 'fixed'\n"), "speculation.depth_mode", "no meaning"},
      {speculation("[speculation.draft]\npath = '/d'\n"), "speculation.draft", "no meaning"},
      {speculation("method = 'mtp'\ndepth = 2\nprompt_lookup_max = 3\n"),
       "speculation.prompt_lookup_max", "only the method \"ngram\""},
      {speculation("method = 'ngram'\ndepth = 2\n[speculation.draft]\npath = '/d'\n"),
       "speculation.draft", "uses no draft model"},
      {speculation("method = 'draft-model'\ndepth = 2\n"), "speculation.draft", "no draft model"},
      {speculation("method = 'draft-model'\ndepth = 2\n[speculation.draft]\nfile = 'd.gguf'\n"),
       "speculation.draft.file", "not an artifact"},
      {speculation("method = 'dspark'\ndepth = 2\n[speculation.draft]\nrevision = "
                   "'9e165c30e2704aec5d9d593cce3eebd58bbef1cb'\n"),
       "speculation.draft.revision", "no repository"},
      // topology and admission
      {serving("pipeline_parallel = 2\n"), "serving.tensor_parallel", "= 4 ranks, but"},
      {kTop + kModel + kEngine + kServing + kLaunch, "serving.tensor_parallel",
       "hardware.gpus is 0"},
      {kTop + kModel + kEngine + "[hardware]\ngpus = 4\n" + kServing + kLaunch,
       "serving.tensor_parallel", "hardware.gpus is 4"},
      {serving("decode_context_parallel = 3\n"), "serving.decode_context_parallel",
       "does not divide"},
      {kTop + kModel + kEngine + kHardware + "roles = ['a']\n" + kServing + kLaunch,
       "hardware.roles", "1 roles for 2 cards"},
      {kTop + kModel + kEngine + kHardware + "roles = ['a', 'a']\n" + kServing + kLaunch,
       "hardware.roles[1]", "stands twice"},
      {llama + "[hardware]\nvram_gib = 24\n" + path_given, "hardware.vram_gib",
       "hardware.gpus is 0"},
      {serving("batched_tokens = 3\n"), "serving.batched_tokens", "cannot hold one step"},
      {serving("batched_tokens = 20\n") + "[speculation]\nmethod = 'dspark'\ndepth = 5\n",
       "serving.batched_tokens",
       "with 5 draft tokens each; wanted at least max_sequences * (depth + 1) = 24"},
      {serving("batched_tokens = 2048\nchunked_prefill = false\n"), "serving.batched_tokens",
       "chunked_prefill is off"},
      {llama + "kv_dtype = 'q8_0'\nkv_dtype_k = 'q8_0'\nkv_dtype_v = 'q8_0'\n" + path_given,
       "serving.kv_dtype", "beside kv_dtype_k"},
      {llama + "kv_dtype_v = 'q8_0'\n" + path_given, "serving.kv_dtype_v",
       "without its counterpart"},
      {serving("kv_dtype_k = 'fp8'\nkv_dtype_v = 'fp8'\n"), "serving.kv_dtype_k",
       "vllm has one type"},
      {serving("efforts = ['low', 'high', 'low']\n"), "serving.efforts[2]", "stands twice"},
      {serving("efforts = ['low']\n") + "[fingerprint.efforts]\nmax = 3\n",
       "fingerprint.efforts.max", "not among serving.efforts"},
      {serving("efforts = ['low', 'max']\n") + "[fingerprint.efforts]\nlow = 3\n",
       "fingerprint.efforts.low", "others are compared with"},
      {serving("auto_tool_choice = true\n"), "serving.auto_tool_choice", "without a tool parser"},
      // model and engine
      {llama + process, "model.artifact", "needs a model file"},
      {sound() + "[[model.artifact]]\nfile = 'a'\n[[model.artifact]]\nfile = 'a'\n",
       "model.artifact[1].file", "listed twice"},
      {kTop + kModel + "chat_template_sha256 = '" + kDigest + "'\n" + kEngine + kHardware +
           kServing + kLaunch,
       "model.chat_template_sha256", "the template is \"default\""},
      {engine("kind = 'vllm'\nimage = 'x@sha256:abc'\n", "runner = 'docker'\n"), "engine.image",
       "malformed digest"},
      {engine("kind = 'vllm'\npackage_sha256 = '" + kDigest + "'\n", "runner = 'process'\n"),
       "engine.package_sha256", "no package"},
      {engine("kind = 'vllm'\npackage = 'vllm'\n", "runner = 'process'\n"), "engine.package",
       "names no version", true},
      // launch
      {engine("kind = 'vllm'\n", "runner = 'docker'\n"), "engine.image", "missing"},
      {engine("kind = 'vllm'\nimage = 'x:1'\n", "runner = 'process'\n"), "engine.image",
       "the runner is \"process\""},
      {engine("kind = 'vllm'\n", "runner = 'external'\n"), "launch.url", "missing"},
      {engine("kind = 'vllm'\n", "runner = 'external'\nurl = 'http://127.0.0.1:1'\nport = 5000\n"),
       "launch.port", "stands in launch.url"},
      {engine("kind = 'vllm'\n",
              "runner = 'external'\nurl = 'http://127.0.0.1:1'\nextra_args = ['-x']\n"),
       "launch.extra_args", "no effect"},
      {engine("kind = 'external'\n", "runner = 'process'\n"), "engine.kind", "cannot be started"},
      {engine("kind = 'vllm'\n", "runner = 'process'\nshm_gib = 4\n"), "launch.shm_gib",
       "only a container"},
      {launch("url = 'http://127.0.0.1:1'\n"), "launch.url", "only an external server"},
      {launch("port = 80\n"), "launch.port", "special rights", true},
      {launch("host = '0.0.0.0'\n"), "launch.host", "reachable for other machines", true},
      {launch("privileged = true\n"), "launch.privileged", "all rights", true},
      {engine("kind = 'vllm'\n", "runner = 'external'\nurl = 'http://10.0.0.7:8000'\n"),
       "launch.url", "unencrypted to 10.0.0.7", true},
      {launch("volumes = ['a']\n"), "launch.volumes[0]", "not a mount"},
      {launch("volumes = ['a:b']\n"), "launch.volumes[0]", "not a mount"},
      {launch("volumes = ['a:/b:zz']\n"), "launch.volumes[0]", "not a mount"},
      {launch("[launch.ulimits]\nnofile = '1:x'\n"), "launch.ulimits.nofile", "soft:hard"},
      {launch("[launch.ulimits]\nnofile = -2\n"), "launch.ulimits.nofile", "soft:hard"},
      {launch("[launch.env]\nHF_TOKEN = 'abc'\n"), "launch.env.HF_TOKEN",
       "move it to [launch.secrets] as HF_TOKEN = \"env:HF_TOKEN\""},
      {launch("[launch.env]\nMY_APIKEY = 'abc'\n"), "launch.env.MY_APIKEY", "looks like a secret"},
      {launch("[launch.env]\nX = 'hf_abcdefghijklmnopqrstuvwxyz'\n"), "launch.env.X",
       "looks like a secret"},
      {launch("[launch.env]\nX = 'env:HOME'\n"), "launch.env.X", "reference to a secret"},
      {launch("[launch.env]\n\"A-B\" = 'x'\n"), "launch.env.A-B", "not a name"},
      {launch("[launch.env]\nA = \"x\\ny\"\n"), "launch.env.A", "line break"},
      {launch("[launch.env]\nA = \"x\\u0000y\"\n"), "launch.env.A", "NUL"},
      {launch("extra_args = [\"a\\nb\"]\n"), "launch.extra_args[0]", "line break"},
      {launch("extra_args = [\"a\\u0000b\"]\n"), "launch.extra_args[0]", "NUL"},
      {launch("extra_args = ['--api-key', 'abc']\n"), "launch.extra_args[0]", "use launch.api_key"},
      {launch("extra_args = ['--hf-token=abc']\n"), "launch.extra_args[0]", "use launch.api_key"},
      {launch("api_key = 'abc'\n"), "launch.api_key", "env:NAME or file:PATH"},
      {launch("[launch.secrets]\nA = 'abc'\n"), "launch.secrets.A", "env:NAME or file:PATH"},
      {launch("[launch.secrets]\nA = 'env:A'\n[launch.env]\nA = '1'\n"), "launch.secrets.A",
       "also set as a plain value"},
      {launch("[launch.env]\nA = '1'\n[platform.wsl2.env]\nA = '1'\n"), "platform.wsl2.env.A",
       "also set in [launch.env]"},
      // forms
      {kTop + "[model]\nrepo = 'o/n'\nrevision = 'main'\n" + kEngine + kHardware + kServing +
           kLaunch,
       "model.revision", "40 hex digits"},
      {kTop + kModel + "dtype = 'fp8'\n" + kEngine + kHardware + kServing + kLaunch, "model.dtype",
       "components differ"},
      {engine("kind = 'vllm'\n", "runner = 'external'\nurl = 'ftp://x'\n"), "launch.url",
       "http://HOST:PORT"},
      {engine("kind = 'vllm'\n", "runner = 'external'\nurl = 'http://u:p@x:1'\n"), "launch.url",
       "http://HOST:PORT"},
      {engine("kind = 'vllm'\n", "runner = 'external'\nurl = 'http://x:70000'\n"), "launch.url",
       "http://HOST:PORT"},
      {sound() + "[[source]]\nurl = 'u'\nlabel = 'local'\ndate = 'yesterday'\n", "source[0].date",
       "YYYY-MM-DD"},
  };
  for (const auto& c : cases) {
    const auto loaded = parse_recipe(c.text, "f.toml");
    const std::string all = messages(loaded.diagnostics);
    EXPECT_EQ(loaded.ok(), c.warning) << c.text << all;
    const bool named = std::any_of(
        loaded.diagnostics.begin(), loaded.diagnostics.end(), [&](const Diagnostic& diagnostic) {
          return (diagnostic.at.key == c.key ||
                  diagnostic.at.key ==
                      "launch.env.\"" + c.key.substr(std::min<size_t>(c.key.size(), 11)) + "\"") &&
                 (diagnostic.severity == Diagnostic::Severity::kWarning) == c.warning &&
                 to_string(diagnostic).find(c.words) != std::string::npos;
        });
    EXPECT_TRUE(named) << "wanted " << c.key << ": " << c.words << "\nin\n"
                       << c.text << "got\n"
                       << all;
    EXPECT_EQ(loaded.diagnostics.size(), 1u) << c.text << all;
  }
}

TEST(Recipe, WhatIsRightStaysRight) {
  const std::string fine[] = {
      sound() + "[launch.env]\nMAX_NUM_BATCHED_TOKENS = '8192'\nDSPARK_TOKENS = '5'\nE = ''\n",
      sound() + "extra_args = ['--max-num-batched-tokens', '8192', '--tokenizer', 'x']\n",
      sound() + "[launch.secrets]\nHF_TOKEN = 'env:HF_TOKEN'\nB = 'file:/run/secrets/b'\n",
      sound() +
          "volumes = ['cache:/cache', '/a:/b:ro']\n[launch.ulimits]\nmemlock = -1\n"
          "nofile = '1:2'\n",
      sound() + "[speculation]\nmethod = 'ngram'\ndepth = 3\nprompt_lookup_max = 4\n",
  };
  for (const auto& text : fine) {
    const auto loaded = parse_recipe(text, "f");
    EXPECT_TRUE(loaded.ok() && loaded.diagnostics.empty()) << messages(loaded.diagnostics);
  }
}

TEST(Recipe, AllErrorsInOneGo) {
  const auto loaded = parse_recipe(
      "schema = 'anvil/recipe/v1'\n"
      "nam = 'x'\n"
      "[model]\nrepo = 5\nrevision = 'main'\ndtype = 'fp8'\n"
      "[engine]\nkind = 'vllm'\n"
      "[serving]\ncontext_tokens = '128k'\nmax_sequences = 0\nefforts = ['low', 'low']\n"
      "[speculation]\ndepth = 5\n"
      "[launch]\nrunner = 'docker'\nport = 99999\n",
      "f");
  EXPECT_FALSE(loaded.ok());
  int last = 0;
  for (const auto& diagnostic : loaded.diagnostics) {
    EXPECT_GE(diagnostic.at.line, last);
    last = diagnostic.at.line;
  }
  EXPECT_EQ(loaded.diagnostics.size(), 11u) << messages(loaded.diagnostics);
  const Error error = to_error(loaded.diagnostics);
  EXPECT_EQ(error.kind, Kind::kInvalidInput);
  EXPECT_NE(error.hint.find("10 more errors"), std::string::npos) << error.hint;
}

TEST(Secrets, ResolveReferencesOnly) {
  setenv("ANVIL_TEST_SECRET", "value", 1);
  EXPECT_EQ(*resolve_secret("env:ANVIL_TEST_SECRET"), "value");
  unsetenv("ANVIL_TEST_SECRET");
  EXPECT_EQ(resolve_secret("env:ANVIL_TEST_SECRET").error().kind, Kind::kNotFound);
  const auto path = std::filesystem::temp_directory_path() /
                    ("anvil-secret-" + std::to_string(std::random_device{}()));
  std::ofstream(path) << "from file\n";
  EXPECT_EQ(*resolve_secret("file:" + path.string()), "from file");
  std::ofstream(path) << "\n";
  EXPECT_EQ(resolve_secret("file:" + path.string()).error().kind, Kind::kInvalidInput);
  std::filesystem::remove(path);
  EXPECT_FALSE(resolve_secret("file:" + path.string()));
  const auto literal = resolve_secret("sk-literal");
  ASSERT_FALSE(literal);
  EXPECT_EQ(literal.error().detail.find("sk-literal"), std::string::npos);
}

}  // namespace
}  // namespace anvil::recipe
