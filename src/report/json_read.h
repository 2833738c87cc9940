#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "base/json.h"

namespace anvil::report {

// Reads into documents that may lack anything. An element of the path that is absent or not an
// object gives null.
const Json& at(const Json& from, std::initializer_list<const char*> path);
std::string text_at(const Json& from,
                    std::initializer_list<const char*> path);  // "" if not a string
std::optional<double> number_at(const Json& from, std::initializer_list<const char*> path);
std::optional<int64_t> integer_at(const Json& from, std::initializer_list<const char*> path);
std::optional<bool> flag_at(const Json& from, std::initializer_list<const char*> path);
// The elements of an array; none if it is not one.
const Json& list_at(const Json& from, std::initializer_list<const char*> path);

}  // namespace anvil::report
