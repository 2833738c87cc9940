#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace anvil::evidence {

// Reading documents that may have any shape (a crash, another version, a forger wrote them):
// nothing here throws, and a value of the wrong type reads as absent.
const Json& member(const Json& object, std::string_view key);  // null if absent
const Json& at_path(const Json& object, std::string_view dotted);
std::optional<int64_t> integer(const Json& object, std::string_view key);
std::optional<double> number(const Json& object, std::string_view key);
std::string text(const Json& object, std::string_view key);  // "" if absent
bool flag(const Json& object, std::string_view key, bool fallback = false);
// The elements of an array, or nothing.
const Json::array_t& elements(const Json& array);

// Numbers anywhere in a document.
int64_t count_numbers(const Json& value);

// A value or null.
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace anvil::evidence
