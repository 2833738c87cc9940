#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace anvil::app {

// A policy or suite that is compiled in: shipped("suites", "quickstart"). Nothing if there is none
// of that name.
std::optional<std::string_view> shipped(std::string_view folder, std::string_view name);

// Whether an argument is the name of a shipped file rather than a path: no slash, no ".toml", and
// no such file here.
bool is_shipped_name(const std::string& argument);

}  // namespace anvil::app
