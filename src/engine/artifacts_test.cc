#include "engine/artifacts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "engine/hash_cache.h"
#include "engine/test_recipe.h"

namespace anvil::engine {
namespace {

// The smallest GGUF file: version 3, no keys, one tensor of 32 floats at offset 0.
std::string small_gguf() {
  std::string bytes = "GGUF";
  const auto put = [&](uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
  };
  put(3, 4);
  put(1, 8);
  put(0, 8);
  put(1, 8);
  bytes += "t";
  put(1, 4);
  put(32, 8);
  put(0, 4);
  put(0, 8);
  bytes.resize((bytes.size() + 31) / 32 * 32);
  bytes += std::string(128, 'x');
  return bytes;
}

class Artifacts : public testing::Test {
 protected:
  void SetUp() override { setenv("ANVIL_HOME", home_.path().c_str(), 1); }
  void TearDown() override { unsetenv("ANVIL_HOME"); }

  recipe::Recipe recipe(const std::string& artifacts, const std::string& kind = "llama.cpp") {
    const std::string text =
        "schema = \"anvil/recipe/v1\"\nname = \"t\"\n[model]\nrepo = \"o/n\"\n" + artifacts +
        "\n[engine]\nkind = \"" + kind +
        "\"\n[serving]\ncontext_tokens = 4096\nmax_sequences = 1\n[launch]\nrunner = \"process\"\n";
    auto loaded = recipe::parse_recipe(text, folder_.path() + "/recipe.toml");
    for (const auto& diagnostic : loaded.diagnostics) {
      if (!loaded.ok()) ADD_FAILURE() << to_string(diagnostic);
    }
    return *loaded.value;
  }
  static std::string artifact(const std::string& file, const std::string& more = "") {
    return "[[model.artifact]]\nfile = \"" + file + "\"\n" + more + "\n";
  }
  std::vector<ArtifactCheck> verify(const recipe::Recipe& one) {
    auto checks = verify_artifacts(one, {}, cancel_);
    EXPECT_TRUE(checks);
    return checks ? *checks : std::vector<ArtifactCheck>{};
  }

  TempFolder home_, folder_;
  base::Cancel cancel_;
};

TEST_F(Artifacts, AreProvenAndRemembered) {
  const std::string bytes = small_gguf();
  const std::string path = folder_.write("m.gguf", bytes);
  const std::string digest = base::sha256(bytes);
  const recipe::Recipe one = recipe(
      artifact("m.gguf", "sha256 = \"" + digest + "\"\nbytes = " + std::to_string(bytes.size())));
  auto checks = verify(one);
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_FALSE(checks[0].error) << to_string(*checks[0].error);
  EXPECT_EQ(checks[0].path, path);
  EXPECT_EQ(checks[0].sha256, digest);
  EXPECT_FALSE(checks[0].remembered);
  EXPECT_TRUE(verify(one)[0].remembered);
  EXPECT_EQ(to_json(verify(one))[0]["error"], Json());

  // The same size, another content: the times give it away.
  std::string changed = bytes;
  changed.back() = 'y';
  folder_.write("m.gguf", changed);
  checks = verify(one);
  EXPECT_FALSE(checks[0].remembered);
  ASSERT_TRUE(checks[0].error);
  EXPECT_EQ(checks[0].error->kind, Kind::kMismatch);
  ASSERT_TRUE(checks[0].error->at);
  EXPECT_EQ(checks[0].error->at->key, "model.artifact[0].file");
}

TEST_F(Artifacts, ADamagedCacheIsAnEmptyOne) {
  const std::string path = folder_.write("cache.json", "{\"x\": [1}");
  const FileStamp stamp{1, 2, 3, 4, 5};
  HashCache cache(path);
  EXPECT_FALSE(cache.find("/a", stamp));
  cache.put("/a", stamp, std::string(64, 'a'));
  EXPECT_EQ(HashCache(path).find("/a", stamp), std::string(64, 'a'));
  EXPECT_FALSE(HashCache(path).find("/a", FileStamp{1, 2, 3, 4, 6}));
  folder_.write("cache.json", R"({"/a": {"stamp": 3, "sha256": []}, "/b": 1})");
  EXPECT_FALSE(HashCache(path).find("/a", stamp));
  EXPECT_FALSE(HashCache(path).find("/b", stamp));
}

TEST_F(Artifacts, EveryProblemIsReportedAtOnce) {
  const std::string bytes = small_gguf();
  folder_.write("short.gguf", bytes.substr(0, bytes.size() - 1));
  folder_.write("header.gguf", bytes.substr(0, 30));
  folder_.write("junk.gguf", "this is no model at all, but a page of a web server");
  folder_.write("size.bin", "12345");
  ASSERT_EQ(mkdir((folder_.path() + "/folder").c_str(), 0755), 0);
  const auto checks = verify(recipe(artifact("absent.gguf") + artifact("short.gguf") +
                                    artifact("header.gguf") + artifact("junk.gguf") +
                                    artifact("size.bin", "bytes = 6") + artifact("folder")));
  ASSERT_EQ(checks.size(), 6u);
  const auto detail = [&](size_t i) { return checks[i].error ? to_string(*checks[i].error) : ""; };
  EXPECT_NE(detail(0).find("there is no file"), std::string::npos) << detail(0);
  EXPECT_NE(detail(0).find(home_.path() + "/models/absent.gguf"), std::string::npos) << detail(0);
  EXPECT_EQ(checks[0].error->kind, Kind::kNotFound);
  EXPECT_NE(detail(1).find("truncated"), std::string::npos) << detail(1);
  EXPECT_NE(detail(2).find("truncated"), std::string::npos) << detail(2);
  EXPECT_FALSE(detail(3).empty());
  EXPECT_NE(detail(4).find("has 5 bytes, declared are 6"), std::string::npos) << detail(4);
  EXPECT_NE(detail(5).find("folder"), std::string::npos) << detail(5);
}

TEST_F(Artifacts, HashingCanBeWatchedAndStopped) {
  const std::string bytes(3 << 20, 'z');
  folder_.write("m.bin", bytes);
  const recipe::Recipe one = recipe(artifact("m.bin", "sha256 = \"" + base::sha256(bytes) + "\""));
  uint64_t last = 0;
  const auto stopped = verify_artifacts(
      one,
      [&](const std::string& file, uint64_t done, uint64_t total) {
        EXPECT_EQ(file, "m.bin");
        EXPECT_EQ(total, bytes.size());
        last = done;
        return false;
      },
      cancel_);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, Kind::kCancelled);
  EXPECT_GT(last, 0u);
  EXPECT_FALSE(verify(one)[0].error);
  cancel_.request();
  EXPECT_FALSE(verify_artifacts(one, {}, cancel_));
}

TEST_F(Artifacts, TheModelIsAFileOrAFolder) {
  const std::string path = folder_.write("m.gguf", "x");
  const recipe::Recipe file = recipe(artifact("m.gguf"));
  EXPECT_EQ(*resolve_model_path(file, shipped_table("llama.cpp")), path);
  EXPECT_EQ(*resolve_model_path(recipe(artifact("m.gguf"), "vllm"), shipped_table("vllm-0.32")),
            folder_.path());
  EXPECT_EQ(*resolve_model_path(recipe("", "vllm"), shipped_table("vllm-0.32")), "o/n");
  const auto missing =
      resolve_model_path(recipe(artifact("gone.gguf")), shipped_table("llama.cpp"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, Kind::kNotFound);
  ASSERT_TRUE(base::make_directories(home_.path() + "/models"));
  home_.write("models/gone.gguf", "x");
  EXPECT_EQ(*resolve_model_path(recipe(artifact("gone.gguf")), shipped_table("llama.cpp")),
            home_.path() + "/models/gone.gguf");
}

TEST_F(Artifacts, TheTemplateIsFoundBesideTheRecipe) {
  const recipe::Recipe one = shipped_recipe(ANVIL_SOURCE_DIR, "gemma-3-270m");
  ASSERT_TRUE(base::make_directories(home_.path() + "/models"));
  home_.write("models/gemma-3-270m-q4_k_m.gguf", "x");
  const auto options = resolve_launch_files(one, shipped_table("llama.cpp"));
  ASSERT_TRUE(options) << to_string(options.error());
  EXPECT_EQ(options->chat_template, std::string(ANVIL_SOURCE_DIR) + "/recipes/gemma-plain.jinja");
  EXPECT_EQ(options->model_path, home_.path() + "/models/gemma-3-270m-q4_k_m.gguf");
}

}  // namespace
}  // namespace anvil::engine
