#pragma once

#include <cmath>

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/strings.h"

// How the decoders of this room read JSON with simdjson On-Demand: in one pass, each field handed
// to a function, with null and missing values alike. Values that nobody reads are skipped
// unchecked.
namespace anvil::wire::on_demand {

namespace od = simdjson::ondemand;
using simdjson::error_code;
using simdjson::SUCCESS;

// Returns from the enclosing function when a simdjson call failed. May be nested.
#define JSON_TRY(expr) JSON_TRY_COUNTED(expr, __COUNTER__)
#define JSON_TRY_COUNTED(expr, number) JSON_TRY_NAMED(expr, number)
#define JSON_TRY_NAMED(expr, number)                                     \
  do {                                                                   \
    if (const auto json_try_##number = (expr)) return json_try_##number; \
  } while (false)

inline bool is_digit_or_minus(char c) {
  return c == '-' || (c >= '0' && c <= '9');
}

// Calls take(key, value) for every field. Fields that `take` does not touch are skipped.
template <class Take>
error_code each_field(od::object object, Take&& take) {
  for (auto item : object) {
    od::field field;
    JSON_TRY(std::move(item).get(field));
    std::string_view key;
    JSON_TRY(field.unescaped_key().get(key));
    JSON_TRY(take(key, field.value()));
  }
  return SUCCESS;
}

// Calls take(value) for the named field, wherever it stands, if it is there; then the object can be
// read from its beginning.
template <class Take>
error_code find_then_rewind(od::object& object, std::string_view key, Take&& take) {
  od::value found;
  const error_code lookup = object.find_field_unordered(key).get(found);
  if (lookup == SUCCESS) {
    JSON_TRY(take(found));
  } else if (lookup != simdjson::NO_SUCH_FIELD) {
    return lookup;
  }
  return object.reset().error();
}

// Nothing when the value is null or of another type.
inline error_code to_object(od::value value, std::optional<od::object>& out) {
  od::json_type type;
  JSON_TRY(value.type().get(type));
  if (type != od::json_type::object) return SUCCESS;
  od::object object;
  JSON_TRY(value.get_object().get(object));
  out = object;
  return SUCCESS;
}

// As each_field, for a value that may be null or missing its object; another type is an error.
template <class Take>
error_code each_field_if(od::value value, Take&& take) {
  od::json_type type;
  JSON_TRY(value.type().get(type));
  if (type == od::json_type::null) return SUCCESS;
  od::object object;
  JSON_TRY(value.get_object().get(object));
  return each_field(object, std::forward<Take>(take));
}

// Calls take(object) for every object of an array; null stands for an empty array.
template <class Take>
error_code each_object(od::value value, Take&& take) {
  od::json_type type;
  JSON_TRY(value.type().get(type));
  if (type == od::json_type::null) return SUCCESS;
  od::array array;
  JSON_TRY(value.get_array().get(array));
  for (auto item : array) {
    od::value element;
    JSON_TRY(std::move(item).get(element));
    std::optional<od::object> object;
    JSON_TRY(to_object(element, object));
    if (object) JSON_TRY(take(*object));
  }
  return SUCCESS;
}

// "" when the value is null or no string. The view lives until the next document is read.
inline error_code text_of(od::value value, std::string_view& out) {
  od::json_type type;
  JSON_TRY(value.type().get(type));
  if (type == od::json_type::string) return value.get_string().get(out);
  return SUCCESS;
}

// Strings as they are, numbers in their own spelling.
inline error_code word_of(od::value value, std::string& out) {
  od::json_type type;
  JSON_TRY(value.type().get(type));
  std::string_view text;
  if (type == od::json_type::string) {
    JSON_TRY(value.get_string().get(text));
    out.assign(text);
  } else if (type == od::json_type::number) {
    out.assign(base::trim(value.raw_json_token()));
  }
  return SUCCESS;
}

// Leaves `out` alone when the value is null or no whole number that fits.
inline error_code integer_of(od::value value, std::optional<int64_t>& out) {
  const std::string_view token = value.raw_json_token();
  if (token.empty() || !is_digit_or_minus(token.front())) return SUCCESS;
  double number = 0;
  int64_t whole = 0;
  if (value.get_int64().get(whole) == SUCCESS) {
    out = whole;
  } else {
    JSON_TRY(value.get_double().get(number));
    if (number > -9e18 && number < 9e18 && number == std::floor(number))
      out = static_cast<int64_t>(number);
  }
  return SUCCESS;
}

// No request has more tokens than this; what says so is not a count.
inline constexpr int64_t kMostCount = 1'000'000'000'000;

// Leaves `out` alone when the value is null or no count: negative, broken or beyond kMostCount.
inline error_code count_of(od::value value, std::optional<int64_t>& out) {
  std::optional<int64_t> whole;
  JSON_TRY(integer_of(value, whole));
  if (whole && *whole >= 0 && *whole <= kMostCount) out = whole;
  return SUCCESS;
}

inline error_code number_of(od::value value, std::optional<double>& out) {
  const std::string_view token = value.raw_json_token();
  if (token.empty() || !is_digit_or_minus(token.front())) return SUCCESS;
  double number = 0;
  JSON_TRY(value.get_double().get(number));
  out = number;
  return SUCCESS;
}

}  // namespace anvil::wire::on_demand
