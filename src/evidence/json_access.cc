#include "evidence/json_access.h"

namespace anvil::evidence {

namespace {
const Json kNull = nullptr;
const Json::array_t kEmpty;
}  // namespace

const Json& member(const Json& object, std::string_view key) {
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

const Json& at_path(const Json& object, std::string_view dotted) {
  const Json* value = &object;
  while (!dotted.empty()) {
    const size_t dot = dotted.find('.');
    value = &member(*value, dotted.substr(0, dot));
    dotted = dot == std::string_view::npos ? std::string_view() : dotted.substr(dot + 1);
  }
  return *value;
}

std::optional<int64_t> integer(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    return std::nullopt;
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<int64_t>();
}

std::optional<double> number(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

std::string text(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

bool flag(const Json& object, std::string_view key, bool fallback) {
  const Json& value = member(object, key);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

const Json::array_t& elements(const Json& array) {
  return array.is_array() ? array.get_ref<const Json::array_t&>() : kEmpty;
}

int64_t count_numbers(const Json& value) {
  if (value.is_number()) return 1;
  int64_t count = 0;
  if (value.is_structured())
    for (const Json& below : value) count += count_numbers(below);
  return count;
}

}  // namespace anvil::evidence
