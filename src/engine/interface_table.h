#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "recipe/recipe.h"

namespace anvil::engine {

// What we know of one engine line, as data: how typed recipe fields become flags or environment, how readiness and
// identity are observed, what its counters are called, which log lines mark phases and which mark failures.
// Immutable. docs/interfaces.md describes the file form.
class InterfaceTable {
 public:
  // A table that is compiled in ("llama.cpp", "vllm-0.32", "vllm-r16", "sglang"), or a file path.
  static Result<InterfaceTable> load(std::string_view name_or_path);
  static std::vector<std::string> shipped();
  // The table that a recipe names (engine.interface).
  static Result<InterfaceTable> for_recipe(const recipe::Recipe& recipe);

  const std::string& name() const { return name_; }
  const Json& document() const { return document_; }
  Json consequence_rules() const;
  // Recipe-against-table sense: typed fields this line has no flag for, raw flags that contradict or duplicate typed
  // fields, context x slots against the engine's own division, efforts it does not know.
  std::vector<recipe::Diagnostic> check(const recipe::Recipe& recipe) const;

 private:
  std::string name_;
  Json document_;
};

}  // namespace anvil::engine
