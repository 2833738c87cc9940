#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/interface_table.h"
#include "recipe/recipe.h"

namespace anvil::engine {

// The settings of a recipe together with everything that is wrong in expressing them. One setting
// per [[field]] of the table that applies, in table order.
struct Translation {
  std::vector<Setting> settings;
  std::vector<recipe::Diagnostic> diagnostics;
};
Translation translate_all(const InterfaceTable& table, const recipe::Recipe& recipe,
                          const LaunchValues& values);

// What build_launch() fills in, from the recipe alone: host, port, model and template as written.
LaunchValues declared_launch_values(const recipe::Recipe& recipe);

// A value as an argument: numbers in their shortest form, true and false.
std::string argument_text(const Json& value);
// Equal, numbers within 1e-6 of each other.
bool same_value(const Json& a, const Json& b);

}  // namespace anvil::engine
