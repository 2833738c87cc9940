#include "qualify/json_schema.h"

#include <cmath>
#include <set>
#include <string_view>

#include "base/strings.h"

namespace anvil::qualify {

namespace {

// Pointer of a member or element, with the escapes of RFC 6901.
std::string below(const std::string& pointer, std::string_view key) {
  std::string escaped = base::replace_all(std::string(key), "~", "~0");
  return pointer + "/" + base::replace_all(std::move(escaped), "/", "~1");
}

bool is_integer(const Json& value) {
  if (value.is_number_integer()) return true;
  if (!value.is_number_float()) return false;
  const double number = value.get<double>();
  return std::isfinite(number) && number == std::floor(number);
}

std::string type_of(const Json& value) {
  if (value.is_number()) return is_integer(value) ? "integer" : "number";
  return value.type_name();
}

bool has_type(const Json& value, const std::string& type) {
  if (type == "integer") return is_integer(value);
  if (type == "number") return value.is_number();
  return type == value.type_name();
}

std::string with_article(const std::string& type) {
  return (type.find_first_of("aeio") == 0 ? "an " : "a ") + type;
}

size_t code_points(const std::string& text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

class Validator {
 public:
  void check(const Json& schema, const Json& value, const std::string& at) {
    if (schema.is_boolean()) {
      if (!schema.get<bool>()) add(at, "is not allowed here");
      return;
    }
    if (!schema.is_object()) return add(at, "the schema is not an object");
    for (const auto& [keyword, rule] : schema.items()) apply(schema, keyword, rule, value, at);
  }

  std::vector<SchemaViolation> take() { return std::move(violations_); }

 private:
  void add(const std::string& at, std::string problem) {
    violations_.push_back({at, std::move(problem)});
  }

  void apply(const Json& schema, const std::string& keyword, const Json& rule, const Json& value,
             const std::string& at) {
    static const std::set<std::string> annotations{"title", "description", "$schema", "default",
                                                   "examples"};
    if (annotations.contains(keyword)) return;
    if (keyword == "type") return check_type(rule, value, at);
    if (keyword == "enum") {
      for (const Json& allowed : rule)
        if (allowed == value) return;
      return add(at, "is " + value.dump() + ", must be one of " + rule.dump());
    }
    if (keyword == "const") {
      if (rule != value) add(at, "is " + value.dump() + ", must be " + rule.dump());
      return;
    }
    if (keyword == "properties" || keyword == "required" || keyword == "additionalProperties") {
      if (value.is_object()) check_object(schema, keyword, rule, value, at);
      return;
    }
    if (keyword == "items") {
      if (!value.is_array()) return;
      for (size_t i = 0; i < value.size(); ++i) check(rule, value[i], below(at, std::to_string(i)));
      return;
    }
    if (keyword == "minItems" || keyword == "maxItems") {
      if (value.is_array()) check_size(keyword == "minItems", rule, value.size(), "items", at);
      return;
    }
    if (keyword == "minLength" || keyword == "maxLength") {
      if (value.is_string())
        check_size(keyword == "minLength", rule, code_points(value.get<std::string>()),
                   "characters", at);
      return;
    }
    if (keyword == "minimum" || keyword == "maximum") {
      if (!value.is_number()) return;
      const bool low = keyword == "minimum";
      if (low ? value < rule : value > rule)
        add(at, "is " + value.dump() + ", must be at " + (low ? "least " : "most ") + rule.dump());
      return;
    }
    add(at, "the schema uses \"" + keyword + "\", which this validator does not enforce");
  }

  void check_type(const Json& rule, const Json& value, const std::string& at) {
    std::vector<std::string> allowed;
    if (rule.is_string()) allowed.push_back(rule.get<std::string>());
    if (rule.is_array())
      for (const Json& type : rule)
        if (type.is_string()) allowed.push_back(type.get<std::string>());
    for (const std::string& type : allowed)
      if (has_type(value, type)) return;
    add(at,
        "is " + with_article(type_of(value)) + ", must be " +
            (allowed.empty() ? "of a declared type" : with_article(base::join(allowed, " or "))));
  }

  void check_object(const Json& schema, const std::string& keyword, const Json& rule,
                    const Json& value, const std::string& at) {
    if (keyword == "required") {
      for (const Json& key : rule)
        if (!value.contains(key.get<std::string>()))
          add(below(at, key.get<std::string>()), "missing");
      return;
    }
    if (keyword == "properties") {
      for (const auto& [key, below_schema] : rule.items())
        if (value.contains(key)) check(below_schema, value[key], below(at, key));
      return;
    }
    const Json known = schema.value("properties", Json::object());
    for (const auto& [key, member] : value.items()) {
      if (known.contains(key)) continue;
      if (rule == Json(false))
        add(below(at, key), "is not declared");
      else
        check(rule, member, below(at, key));
    }
  }

  void check_size(bool low, const Json& rule, size_t size, std::string_view unit,
                  const std::string& at) {
    const auto limit = rule.get<int64_t>();
    const auto have = static_cast<int64_t>(size);
    if (low ? have < limit : have > limit)
      add(at, "has " + std::to_string(have) + " " + std::string(unit) + ", must have at " +
                  (low ? "least " : "most ") + std::to_string(limit));
  }

  std::vector<SchemaViolation> violations_;
};

}  // namespace

std::vector<SchemaViolation> validate_schema(const Json& schema, const Json& value) {
  Validator validator;
  validator.check(schema, value, "");
  return validator.take();
}

std::string to_string(const std::vector<SchemaViolation>& violations) {
  std::vector<std::string> parts;
  for (const SchemaViolation& v : violations)
    parts.push_back((v.pointer.empty() ? "the value" : v.pointer) + " " + v.problem);
  return base::join(parts, "; ");
}

}  // namespace anvil::qualify
