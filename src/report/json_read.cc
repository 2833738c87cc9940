#include "report/json_read.h"

#include <cmath>

namespace anvil::report {

const Json& at(const Json& from, std::initializer_list<const char*> path) {
  static const Json kNull;
  const Json* here = &from;
  for (const char* key : path) {
    if (!here->is_object()) return kNull;
    const auto found = here->find(key);
    if (found == here->end()) return kNull;
    here = &*found;
  }
  return *here;
}

std::string text_at(const Json& from, std::initializer_list<const char*> path) {
  const Json& value = at(from, path);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<double> number_at(const Json& from, std::initializer_list<const char*> path) {
  const Json& value = at(from, path);
  return value.is_number() ? std::optional<double>(value.get<double>()) : std::nullopt;
}

std::optional<int64_t> integer_at(const Json& from, std::initializer_list<const char*> path) {
  const Json& value = at(from, path);
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (!(std::abs(number) < 9e18)) return std::nullopt;
  return static_cast<int64_t>(number);
}

std::optional<bool> flag_at(const Json& from, std::initializer_list<const char*> path) {
  const Json& value = at(from, path);
  return value.is_boolean() ? std::optional<bool>(value.get<bool>()) : std::nullopt;
}

const Json& list_at(const Json& from, std::initializer_list<const char*> path) {
  static const Json kEmpty = Json::array();
  const Json& value = at(from, path);
  return value.is_array() ? value : kEmpty;
}

}  // namespace anvil::report
