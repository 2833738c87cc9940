#include "recipe/diff.h"

#include <gtest/gtest.h>

namespace anvil::recipe {
namespace {

const std::string kHash = "9e165c30e2704aec5d9d593cce3eebd58bbef1cb";

Recipe make(const std::string& name, const std::string& serving, const std::string& rest = "",
            const std::string& model = "") {
  const auto loaded = parse_recipe(
      "schema = 'anvil/recipe/v1'\nname = '" + name + "'\n[model]\nrepo = 'o/n'\nrevision = '" +
          kHash + "'\n" + model + "[engine]\nkind = 'vllm'\n[serving]\ncontext_tokens = 4096\n" +
          "max_sequences = 8\n" + serving + "[launch]\nrunner = 'process'\n" + rest,
      name + ".toml");
  EXPECT_TRUE(loaded.ok()) << (loaded.diagnostics.empty() ? "" : to_string(loaded.diagnostics[0]));
  return loaded.ok() ? *loaded.value : Recipe();
}

std::vector<std::string> changed(const Json& result) {
  std::vector<std::string> out;
  for (const auto& entry : result["changed"]) out.push_back(entry["variable"]);
  return out;
}

using Names = std::vector<std::string>;

TEST(Diff, EqualRecipesDifferInLabelsOnly) {
  const Json result =
      diff(make("a", "expert_parallel = false\n"), make("b", "", "port = 99\n"), nullptr);
  EXPECT_TRUE(changed(result).empty()) << result.dump(1);
  EXPECT_EQ(result["unchanged"].size(), variables().size());
  ASSERT_EQ(result["labels"].size(), 2u);
  EXPECT_EQ(result["labels"][0], Json::parse(R"({"path":"launch.port","a":0,"b":99})"));
  EXPECT_EQ(result["a"]["digest"], result["b"]["digest"]);
}

TEST(Diff, GroupsFieldsIntoVariables) {
  const Recipe a = make("a", "kv_dtype = 'fp8'\nbatched_tokens = 4096\n");
  const Recipe b = make("b", "batched_tokens = 8192\n",
                        "extra_args = ['-x']\n[launch.env]\nA = '1'\n[platform.wsl2.env]\nB = '2'\n"
                        "[loader]\noffline = true\n[sampling]\ntop_k = 4\n");
  const Json result = diff(a, b, nullptr);
  EXPECT_EQ(changed(result),
            (Names{"admission", "kv-dtype", "sampling", "loader", "launch", "platform"}));
  EXPECT_EQ(result["changed"][0]["fields"],
            Json::parse(R"([{"path":"serving.batched_tokens","a":4096,"b":8192}])"));
  EXPECT_EQ(result["changed"][1]["fields"],
            Json::parse(R"([{"path":"serving.kv_dtype","a":"fp8","b":null}])"));
  EXPECT_EQ(result["changed"][4]["fields"],
            Json::parse(R"([{"path":"launch.env.A","a":null,"b":"1"},
                            {"path":"launch.extra_args","a":null,"b":["-x"]}])"));
}

TEST(Diff, ArtifactNamesCountOnlyWithoutDigest) {
  const std::string sha = "sha256 = '" + std::string(64, 'a') + "'\n";
  const auto with = [](const std::string& file, const std::string& hash) {
    return make("x", "", "", "[[model.artifact]]\nfile = '" + file + "'\n" + hash);
  };
  EXPECT_TRUE(changed(diff(with("a", sha), with("b", sha), nullptr)).empty());
  EXPECT_EQ(changed(diff(with("a", ""), with("b", ""), nullptr)), Names{"weights"});
}

TEST(Diff, ConsequencesAreWhatTheRulesComputeDifferently) {
  const Recipe a = make("a", "", "[speculation]\nmethod = 'mtp'\ndepth = 5\n");
  const Recipe b = make("b", "");
  const Json rules = Json::parse(R"json([
    {"what":"cap","expression":"serving.max_sequences * (speculation.depth + 1)","because":"rows"},
    {"what":"same","expression":"serving.max_sequences","because":"x"},
    {"what":"broken","expression":"1 / speculation.depth","because":"x"},
    {"what":"no expression"}, 5])json");
  const Json result = diff(a, b, rules);
  ASSERT_EQ(result["consequences"].size(), 2u) << result.dump(1);
  EXPECT_EQ(result["consequences"][0],
            Json::parse(R"({"what":"cap","a":48,"b":8,"because":"rows"})"));
  EXPECT_EQ(result["consequences"][1]["what"], "broken");
  EXPECT_NE(result["consequences"][1]["error"].get<std::string>().find("division by zero"),
            std::string::npos);
}

}  // namespace
}  // namespace anvil::recipe
