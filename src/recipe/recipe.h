#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "recipe/diagnostic.h"

namespace anvil::recipe {

// A pinned, typed description of one way to serve one model. Immutable after loading. Fields are
// addressed by their dotted path in the file ("serving.context_tokens"); the field table in
// recipe/fields.h lists all of them with type, unit, range and the variable that they belong to in
// a comparison.
class Recipe {
 public:
  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }  // the file it came from
  // Identity: every field but labels, defaults left out, keys sorted.
  const Json& canonical() const { return canonical_; }
  const std::string& digest() const { return digest_; }  // SHA-256 of base::canonical(canonical())
  // All fields, labels too, as written.
  const Json& document() const { return document_; }

  // The value at a dotted path: as written, else the field's default, else null.
  const Json& at(std::string_view path) const;
  bool has(std::string_view path) const;          // written in the file
  std::string text(std::string_view path) const;  // "" if absent
  int64_t integer(std::string_view path, int64_t fallback = 0) const;
  double number(std::string_view path, double fallback = 0) const;
  bool flag(std::string_view path, bool fallback = false) const;
  std::vector<std::string> list(std::string_view path) const;  // of strings
  std::map<std::string, std::string> map(
      std::string_view path) const;  // of strings, e.g. "launch.env"
  Position position(std::string_view path) const;

  // Identity fields that a promotable recipe must pin and this one does not: "model.revision",
  // "engine.image", ...
  const std::vector<std::string>& unpinned() const { return unpinned_; }

 private:
  friend class RecipeLoader;
  std::string name_, path_, digest_;
  Json document_, canonical_;
  std::map<std::string, Position, std::less<>> positions_;
  std::vector<std::string> unpinned_;
};

Loaded<Recipe> load_recipe(const std::string& path);
// The same from memory; `path` is used in diagnostics and to resolve relative file names.
Loaded<Recipe> parse_recipe(std::string_view toml, const std::string& path);

// The field reference of docs/recipe.md, as it follows from the field table.
std::string recipe_reference();

// A reference to a secret: "env:NAME" or "file:PATH". Resolved only at the moment of use.
Result<std::string> resolve_secret(std::string_view reference);

}  // namespace anvil::recipe
