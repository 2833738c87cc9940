#pragma once

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "base/json.h"

namespace anvil::evidence::testing {

// The keywords of JSON Schema that schemas/ uses.
class Schema {
 public:
  explicit Schema(Json document) : root_(std::move(document)) {}

  // Places that break the schema, with the rule.
  std::vector<std::string> check(const Json& value) const {
    std::vector<std::string> out;
    visit(root_, value, "", out);
    return out;
  }

 private:
  static bool is(const Json& value, const std::string& type) {
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    return type == "null" && value.is_null();
  }

  void visit(const Json& schema, const Json& value, const std::string& at,
             std::vector<std::string>& out) const {
    if (schema.is_boolean()) {
      if (!schema.get<bool>()) out.push_back(at + ": may not be there");
      return;
    }
    for (const auto& [rule, body] : schema.items()) {
      if (rule == "$ref") {
        visit(root_.at(Json::json_pointer(body.get<std::string>().substr(1))), value, at, out);
      } else if (rule == "type") {
        bool any = false;
        for (const Json& type : body.is_array() ? body : Json::array({body}))
          any = any || is(value, type);
        if (!any) out.push_back(at + ": is not " + body.dump());
      } else if (rule == "enum") {
        if (std::find(body.begin(), body.end(), value) == body.end())
          out.push_back(at + ": not in " + body.dump());
      } else if (rule == "const") {
        if (value != body) out.push_back(at + ": is not " + body.dump());
      } else if (rule == "pattern") {
        if (value.is_string() &&
            !std::regex_search(value.get<std::string>(), std::regex(body.get<std::string>())))
          out.push_back(at + ": does not match " + body.dump());
      } else if (rule == "required" && value.is_object()) {
        for (const Json& key : body)
          if (!value.contains(key.get<std::string>())) out.push_back(at + ": lacks " + key.dump());
      } else if (rule == "minItems" && value.is_array()) {
        if (value.size() < body.get<size_t>()) out.push_back(at + ": too short");
      }
    }
    if (value.is_object()) members(schema, value, at, out);
    if (value.is_array()) items(schema, value, at, out);
  }

  void members(const Json& schema, const Json& value, const std::string& at,
               std::vector<std::string>& out) const {
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [key, below] : value.items()) {
      if (properties.contains(key))
        visit(properties[key], below, at + "/" + key, out);
      else if (schema.contains("additionalProperties"))
        visit(schema["additionalProperties"], below, at + "/" + key, out);
    }
  }

  void items(const Json& schema, const Json& value, const std::string& at,
             std::vector<std::string>& out) const {
    const Json prefix = schema.value("prefixItems", Json::array());
    for (size_t i = 0; i < value.size(); ++i) {
      const std::string below = at + "/" + std::to_string(i);
      if (i < prefix.size())
        visit(prefix[i], value[i], below, out);
      else if (schema.contains("items"))
        visit(schema["items"], value[i], below, out);
    }
  }

  Json root_;
};

}  // namespace anvil::evidence::testing
