#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <stdexcept>
#include <string>

#include "base/files.h"
#include "engine/interface_table.h"
#include "recipe/diagnostic.h"
#include "recipe/recipe.h"

namespace anvil::engine {

// A recipe for tests: the least that is valid, plus `more`. `serving` is put into that table.
inline recipe::Recipe test_recipe(const std::string& kind, const std::string& serving,
                                  const std::string& more = "", const std::string& engine = "",
                                  const std::string& folder = "/tmp") {
  const bool needs_model = kind == "llama.cpp" && more.find("model_path") == std::string::npos;
  const std::string text =
      "schema = \"anvil/recipe/v1\"\nname = \"test\"\n[model]\nrepo = \"owner/name\"\n"
      "served_name = \"served\"\n[engine]\nkind = \"" +
      kind + "\"\n" + engine + "\n[serving]\n" + serving + "\n[launch]\nrunner = \"" +
      (kind == "external" ? "external\"\nurl = \"http://127.0.0.1:1\"\n" : "process\"\n") +
      (needs_model ? "model_path = \"/m.gguf\"\n" : "") + more;
  auto loaded = recipe::parse_recipe(text, folder + "/test.toml");
  std::string problems;
  for (const auto& diagnostic : loaded.diagnostics) problems += to_string(diagnostic) + "\n";
  if (!loaded.ok()) {
    throw std::runtime_error(problems + text);
  }
  return *loaded.value;
}

// `source` is the root of the source tree (ANVIL_SOURCE_DIR).
inline recipe::Recipe shipped_recipe(const std::string& source, const std::string& name) {
  auto loaded = recipe::load_recipe(source + "/recipes/" + name + ".toml");
  if (!loaded.ok()) {
    throw std::runtime_error(to_error(loaded.diagnostics).detail);
  }
  return *loaded.value;
}

inline InterfaceTable shipped_table(std::string_view name) {
  auto table = InterfaceTable::load(name);
  if (!table) {
    throw std::runtime_error(to_string(table.error()));
  }
  return *table;
}

// A folder that goes away with the test.
class TempFolder {
 public:
  TempFolder() {
    char pattern[] = "/tmp/anvil-engine-XXXXXX";
    path_ = mkdtemp(pattern);
  }
  ~TempFolder() {
    const std::string command = "rm -rf '" + path_ + "'";
    EXPECT_EQ(system(command.c_str()), 0);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string write(const std::string& name, std::string_view bytes) const {
    const std::string path = base::join_path(path_, name);
    EXPECT_TRUE(base::write_file_atomic(path, bytes));
    return path;
  }

 private:
  std::string path_;
};

}  // namespace anvil::engine
