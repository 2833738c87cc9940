#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "recipe/recipe.h"

namespace anvil::engine {

// What we know of one engine line, as data: how typed recipe fields become flags or environment,
// how readiness and identity are observed, what its counters are called, which log lines mark
// phases and which mark failures. Immutable and cheap to copy; safe from any thread.
// docs/interfaces.md describes the file form.
class InterfaceTable {
 public:
  struct Rules;  // the compiled patterns, see interface_rules.h

  // A table that is compiled in ("llama.cpp", "vllm-0.32", "vllm-r16", "sglang", "openai"), or a
  // file path.
  static Result<InterfaceTable> load(std::string_view name_or_path);
  // The same from memory; `path` is used in errors. `extends` finds shipped tables only.
  static Result<InterfaceTable> parse(std::string_view toml, const std::string& path);
  static std::vector<std::string> shipped();
  // The table that a recipe names (engine.interface), else the one for its engine.kind.
  static Result<InterfaceTable> for_recipe(const recipe::Recipe& recipe);

  const std::string& name() const { return name_; }
  const Json& document() const { return document_; }  // with what it extends filled in
  const Rules& rules() const { return *rules_; }
  std::shared_ptr<const Rules> shared_rules() const { return rules_; }
  Json consequence_rules() const;
  // Recipe-against-table sense: typed fields this line has no flag for, raw flags and variables
  // that contradict or repeat typed fields, context x slots against the engine's own division.
  std::vector<recipe::Diagnostic> check(const recipe::Recipe& recipe) const;

 private:
  std::string name_;
  Json document_;
  std::shared_ptr<const Rules> rules_;
};

// One typed field as this line expresses it: what `anvil recipe show` explains and check()
// compares.
struct Setting {
  std::string field;              // recipe path
  std::vector<std::string> args;  // "--max-num-seqs", "8"
  std::map<std::string, std::string> env;
};
// Values that exist only at launch: "launch.port", "launch.host", "launch.model_path", ...
using LaunchValues = std::map<std::string, Json, std::less<>>;
// All settings of a recipe, in the order of the table; values that the line cannot express are
// errors at the field's place in the recipe.
Result<std::vector<Setting>> translate(const InterfaceTable& table, const recipe::Recipe& recipe,
                                       const LaunchValues& values);

}  // namespace anvil::engine
