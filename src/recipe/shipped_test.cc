#include <gtest/gtest.h>
#include <stdlib.h>

#include <set>

#include "base/files.h"
#include "base/hash.h"
#include "base/strings.h"
#include "recipe/diff.h"
#include "recipe/fields.h"
#include "recipe/policy.h"
#include "recipe/recipe.h"

namespace anvil::recipe {
namespace {

const std::string kRoot = ANVIL_SOURCE_DIR;

std::vector<std::string> files(const std::string& folder) {
  std::vector<std::string> out;
  auto names = base::list_directory(kRoot + "/" + folder);
  EXPECT_TRUE(names);
  for (const auto& name : names ? *names : std::vector<std::string>())
    if (name.ends_with(".toml")) out.push_back(kRoot + "/" + folder + "/" + name);
  EXPECT_FALSE(out.empty()) << folder;
  return out;
}

template <class T>
void expect_clean(const Loaded<T>& loaded) {
  EXPECT_TRUE(loaded.ok());
  for (const auto& diagnostic : loaded.diagnostics) ADD_FAILURE() << to_string(diagnostic);
}

Recipe shipped(const std::string& name) {
  auto loaded = load_recipe(kRoot + "/recipes/" + name + ".toml");
  expect_clean(loaded);
  return loaded.ok() ? *loaded.value : Recipe();
}

TEST(Shipped, EverythingLoadsWithoutAWord) {
  for (const auto& path : files("recipes")) expect_clean(load_recipe(path));
  for (const auto& path : files("policies")) expect_clean(load_policy(path));
  for (const auto& path : files("suites")) expect_clean(load_suite(path));
}

TEST(Shipped, OnlyTheExternalRecipeIsUnpinned) {
  for (const auto& path : files("recipes")) {
    const auto loaded = load_recipe(path);
    ASSERT_TRUE(loaded.ok());
    EXPECT_EQ(loaded.value->unpinned().empty(), loaded.value->text("launch.runner") != "external")
        << path;
  }
}

TEST(Shipped, TemplatesHaveTheDeclaredDigest) {
  for (const auto& path : files("recipes")) {
    const auto loaded = load_recipe(path);
    ASSERT_TRUE(loaded.ok());
    const std::string name = loaded.value->text("model.chat_template");
    if (name == "default") continue;
    const auto digest = base::sha256_file(base::join_path(base::parent_path(path), name));
    ASSERT_TRUE(digest) << name;
    EXPECT_EQ(*digest, loaded.value->text("model.chat_template_sha256"));
  }
}

TEST(Shipped, TheR16PairDiffersInSpeculationOnly) {
  const Recipe candidate = shipped("deepseek-v4-flash-r16-dspark5-128k");
  const Recipe control = shipped("deepseek-v4-flash-r16-nospec-128k");
  const Json rules = Json::array(
      {{{"what", "CUDA-graph cap"},
        {"expression",
         "speculation.depth > 0 ? serving.max_sequences * (speculation.depth + 1) : 32"},
        {"because", "rows of a verify step"}}});
  const Json result = diff(candidate, control, rules);
  ASSERT_EQ(result["changed"].size(), 1u) << result.dump(1);
  EXPECT_EQ(result["changed"][0]["variable"], "speculation");
  std::vector<std::string> paths;
  for (const auto& field : result["changed"][0]["fields"]) paths.push_back(field["path"]);
  EXPECT_EQ(paths,
            (std::vector<std::string>{"speculation.depth", "speculation.depth_mode",
                                      "speculation.draft.path", "speculation.draft_sampling",
                                      "speculation.method", "speculation.rejection_sampling"}));
  EXPECT_EQ(result["unchanged"].size() + 1, variables().size());
  ASSERT_EQ(result["consequences"].size(), 1u);
  EXPECT_EQ(result["consequences"][0]["a"], 48);
  EXPECT_EQ(result["consequences"][0]["b"], 32);
  std::set<std::string> labels;
  for (const auto& field : result["labels"]) labels.insert(field["path"]);
  for (const char* label : {"name", "role", "notes", "launch.port", "model.served_name"})
    EXPECT_TRUE(labels.contains(label)) << label;
}

// The lanes of the quickstart must be able to give a median even when one request fails.
TEST(Shipped, QuickstartLanesAreLargeEnough) {
  const auto suite = load_suite(kRoot + "/suites/quickstart.toml");
  ASSERT_TRUE(suite.ok());
  for (const auto& lane : suite.value->canonical["lane"]) EXPECT_GE(lane["requests"], 12);
}

// What a document holds between its two generated-part marks must be what the field tables say.
// ANVIL_UPDATE_DOCS=1 in the environment rewrites it.
void expect_generated(const std::string& name, const std::string& mark, const std::string& wanted) {
  const std::string path = kRoot + "/docs/" + name;
  const std::string begin = "<!-- generated: " + mark + " -->\n";
  const std::string end = "<!-- end generated -->\n";
  const auto text = base::read_file(path);
  ASSERT_TRUE(text) << path;
  const auto from = text->find(begin);
  ASSERT_NE(from, std::string::npos) << "docs/" << name << " lacks the line " << begin;
  const auto to = text->find(end, from);
  ASSERT_NE(to, std::string::npos);
  const auto start = from + begin.size();
  const std::string fresh = "\n" + wanted;
  if (getenv("ANVIL_UPDATE_DOCS")) {
    ASSERT_TRUE(base::write_file_atomic(path, text->substr(0, start) + fresh + text->substr(to)));
    return;
  }
  EXPECT_TRUE(text->substr(start, to - start) == fresh)
      << "docs/" << name << " is not what the field table says: run this test once with "
      << "ANVIL_UPDATE_DOCS=1 in the environment";
}

// The first TOML block of a document.
std::string example(const std::string& name) {
  const auto text = base::read_file(kRoot + "/docs/" + name);
  if (!text) return {};
  const auto from = text->find("```toml\n") + 8;
  return text->substr(from, text->find("```\n", from) - from);
}

TEST(Shipped, ExamplesInDocumentsDoWhatTheySay) {
  std::vector<std::string> keys;
  for (const auto& diagnostic : parse_recipe(example("recipe.md"), "f").diagnostics)
    keys.push_back(diagnostic.at.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"model.artifact[0].sha256", "engine.source_commit"}));
  expect_clean(parse_policy(example("policy.md"), "f"));
  expect_clean(parse_suite(example("suite.md"), "f"));
}

TEST(Shipped, ReferencesAreFresh) {
  expect_generated("recipe.md", "recipe fields", recipe_reference());
  expect_generated("recipe.md", "host file fields", reference(host_schema()));
  expect_generated("policy.md", "policy fields", policy_reference());
  expect_generated("suite.md", "suite fields", suite_reference());
}

}  // namespace
}  // namespace anvil::recipe
