#include <cstddef>
#include <cstdint>
#include <string_view>

#include "recipe/diff.h"
#include "recipe/expression.h"
#include "recipe/policy.h"
#include "recipe/recipe.h"

// Arbitrary bytes as a recipe, policy, suite and host file, and as an expression: everything is
// refused or accepted, nothing crashes, and whatever is accepted can be compared with itself.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto recipe = anvil::recipe::parse_recipe(text, "fuzz.toml");
  for (const auto& diagnostic : recipe.diagnostics)
    if (anvil::recipe::to_string(diagnostic).empty()) __builtin_trap();
  if (!recipe.ok() && !anvil::recipe::has_errors(recipe.diagnostics)) __builtin_trap();
  if (recipe.ok()) {
    const auto same = anvil::recipe::diff(*recipe.value, *recipe.value, nullptr);
    if (!same["changed"].empty() || !same["labels"].empty()) __builtin_trap();
  }
  if (text.starts_with("schema = \"anvil/p")) (void)anvil::recipe::parse_policy(text, "fuzz.toml");
  if (text.starts_with("schema = \"anvil/s")) (void)anvil::recipe::parse_suite(text, "fuzz.toml");
  if (text.starts_with("schema = \"anvil/h")) (void)anvil::recipe::parse_host(text, "fuzz.toml");
  if (size < 200)
    (void)anvil::recipe::evaluate(text,
                                  [](std::string_view path) { return anvil::Json(path.size()); });
  return 0;
}
