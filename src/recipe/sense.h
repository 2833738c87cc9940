#pragma once

#include <string>
#include <vector>

#include "recipe/recipe.h"

namespace anvil::recipe {

// Collects diagnostics about fields of one recipe.
class Findings {
 public:
  explicit Findings(const Recipe& recipe) : recipe_(recipe) {}
  void error(std::string_view key, std::string problem, std::string remedy);
  void warning(std::string_view key, std::string problem, std::string remedy);
  std::vector<Diagnostic> take() { return std::move(diagnostics_); }

 private:
  const Recipe& recipe_;
  std::vector<Diagnostic> diagnostics_;
};

// What no single field can get wrong: whether the fields of a recipe make sense together. Tolerates
// fields of wrong types (the schema reports those) by treating them as absent.
void check_declared(const Recipe& recipe, Findings& findings);
void check_model(const Recipe& recipe, Findings& findings);
void check_serving(const Recipe& recipe, Findings& findings);
void check_speculation(const Recipe& recipe, Findings& findings);
void check_launch(const Recipe& recipe, Findings& findings);

// The identity fields that a promotable recipe must pin and this one does not.
std::vector<std::string> find_unpinned(const Recipe& recipe);
// "name@sha256:<64 hex>".
bool is_pinned_image(std::string_view image);

}  // namespace anvil::recipe
