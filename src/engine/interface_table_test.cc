#include "engine/interface_table.h"

#include <gtest/gtest.h>

#include "engine/interface_rules.h"
#include "engine/test_recipe.h"

namespace anvil::engine {
namespace {

TEST(InterfaceTable, EveryShippedTableLoads) {
  const auto names = InterfaceTable::shipped();
  EXPECT_EQ(names, (std::vector<std::string>{"llama.cpp", "openai", "scripted", "sglang",
                                             "vllm-0.32", "vllm-r16"}));
  for (const std::string& name : names) {
    const auto table = InterfaceTable::load(name);
    ASSERT_TRUE(table) << to_string(table.error());
    EXPECT_EQ(table->name(), name);
    EXPECT_FALSE(table->rules().failures.empty()) << name;
    EXPECT_FALSE(table->rules().readiness.path.empty()) << name;
  }
}

TEST(InterfaceTable, AnImageLineInheritsFromItsEngine) {
  const InterfaceTable parent = shipped_table("vllm-0.32");
  const InterfaceTable child = shipped_table("vllm-r16");
  EXPECT_EQ(child.rules().phases.size(), parent.rules().phases.size());
  EXPECT_EQ(child.document()["metrics"], parent.document()["metrics"]);
  EXPECT_GT(child.rules().failures.size(), parent.rules().failures.size());
  EXPECT_NE(child.document()["field"], parent.document()["field"]);
}

TEST(InterfaceTable, UnknownNamesAreRefusedWithAGuess) {
  const auto table = InterfaceTable::load("llama.cp");
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().kind, Kind::kInvalidInput);
  EXPECT_NE(table.error().hint.find("llama.cpp"), std::string::npos) << to_string(table.error());
  EXPECT_FALSE(InterfaceTable::load("common"));
  EXPECT_FALSE(InterfaceTable::load("/nowhere/x.toml"));
}

TEST(InterfaceTable, BadTablesNameTheirPlace) {
  const std::string head = "schema = \"anvil/interface/v1\"\nname = \"x\"\nengine = \"vllm\"\n";
  const auto error = [&](const std::string& more) {
    const auto table = InterfaceTable::parse(head + more, "x.toml");
    return table ? std::string("accepted") : to_string(table.error());
  };
  EXPECT_EQ(error(""), "accepted");
  EXPECT_NE(error("reediness = 1\n").find("x.toml:4"), std::string::npos);
  EXPECT_NE(error("extends = \"nothing\"\n").find("nothing"), std::string::npos);
  EXPECT_NE(error("[[phase]]\nname = \"a\"\npattern = \"{x}\"\n").find("no literal text"),
            std::string::npos);
  EXPECT_NE(error("[[failure]]\nclass = \"a\"\npatterns = [\"{\"]\nhint = \"\"\n").find("\"{\""),
            std::string::npos);
  EXPECT_NE(error("[[field]]\nflag = \"-c\"\n").find("recipe"), std::string::npos);
}

TEST(InterfaceTable, IsFoundForARecipe) {
  const std::string serving = "context_tokens = 4096\nmax_sequences = 1";
  EXPECT_EQ(InterfaceTable::for_recipe(test_recipe("llama.cpp", serving))->name(), "llama.cpp");
  EXPECT_EQ(InterfaceTable::for_recipe(test_recipe("vllm", serving))->name(), "vllm-0.32");
  EXPECT_EQ(InterfaceTable::for_recipe(test_recipe("external", serving))->name(), "openai");
  const auto wrong =
      InterfaceTable::for_recipe(test_recipe("vllm", serving, "", "interface = \"llama.cpp\""));
  ASSERT_FALSE(wrong);
  ASSERT_TRUE(wrong.error().at);
  EXPECT_EQ(wrong.error().at->key, "engine.interface");
  const auto unknown =
      InterfaceTable::for_recipe(test_recipe("vllm", serving, "", "interface = \"vllm-r61\""));
  ASSERT_FALSE(unknown);
  EXPECT_NE(to_string(unknown.error()).find("vllm-r16"), std::string::npos);
}

TEST(InterfaceTable, ATableFileBesideTheRecipeWorks) {
  const TempFolder folder;
  folder.write("mine.toml",
               "schema = \"anvil/interface/v1\"\nname = \"mine\"\nengine = \"vllm\"\n"
               "extends = \"vllm-0.32\"\nprogram = [\"/opt/mine\"]\n");
  const auto table =
      InterfaceTable::for_recipe(test_recipe("vllm", "context_tokens = 4096\nmax_sequences = 1", "",
                                             "interface = \"mine.toml\"", folder.path()));
  ASSERT_TRUE(table) << to_string(table.error());
  EXPECT_EQ(table->name(), "mine");
  EXPECT_EQ(table->document()["program"], Json::array({"/opt/mine"}));
}

}  // namespace
}  // namespace anvil::engine
