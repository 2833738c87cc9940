#include "recipe/diff.h"

#include <algorithm>
#include <set>

#include "recipe/expression.h"
#include "recipe/fields.h"

namespace anvil::recipe {

namespace {

Json value_or_null(const std::map<std::string, Json>& values, const std::string& path) {
  const auto found = values.find(path);
  return found == values.end() ? Json() : found->second;
}

// The name of an artifact is a label where its content is known on both sides.
bool is_label(const Field& field, const std::string& path, const Recipe& a, const Recipe& b) {
  if (field.label) return true;
  if (field.path != "model.artifact[].file") return false;
  const std::string digest =
      path.substr(0, path.size() - std::string_view("file").size()) + "sha256";
  return a.has(digest) && b.has(digest);
}

Json consequence(const Json& rule, const Recipe& a, const Recipe& b) {
  const auto what = rule.find("what");
  const auto expression = rule.find("expression");
  if (what == rule.end() || expression == rule.end() || !expression->is_string()) return nullptr;
  const auto left = evaluate(expression->get_ref<const std::string&>(), a);
  const auto right = evaluate(expression->get_ref<const std::string&>(), b);
  if (left && right && *left == *right) return nullptr;
  Json out{{"what", *what},
           {"a", left ? *left : Json()},
           {"b", right ? *right : Json()},
           {"because", rule.value("because", std::string())}};
  if (!left || !right) out["error"] = left ? right.error().detail : left.error().detail;
  return out;
}

}  // namespace

Json diff(const Recipe& a, const Recipe& b, const Json& consequence_rules) {
  const Schema& schema = recipe_schema();
  const auto left = schema.flatten(a.document());
  const auto right = schema.flatten(b.document());
  std::set<std::string> paths;
  for (const auto& [path, value] : left) paths.insert(path);
  for (const auto& [path, value] : right) paths.insert(path);

  std::map<std::string, Json, std::less<>> changed;
  Json labels = Json::array();
  for (const auto& path : paths) {
    Json x = value_or_null(left, path);
    Json y = value_or_null(right, path);
    const Field* field = schema.find(path);
    if (!field || x == y) continue;
    Json entry{{"path", path}, {"a", std::move(x)}, {"b", std::move(y)}};
    if (is_label(*field, path, a, b)) {
      labels.push_back(std::move(entry));
      continue;
    }
    auto& fields = changed[std::string(field->variable)];
    if (fields.is_null()) fields = Json::array();
    fields.push_back(std::move(entry));
  }

  Json out{{"a", {{"name", a.name()}, {"digest", a.digest()}}},
           {"b", {{"name", b.name()}, {"digest", b.digest()}}},
           {"changed", Json::array()},
           {"consequences", Json::array()},
           {"labels", std::move(labels)},
           {"unchanged", Json::array()}};
  for (const std::string_view variable : variables()) {
    if (const auto found = changed.find(variable); found != changed.end())
      out["changed"].push_back({{"variable", variable}, {"fields", found->second}});
    else
      out["unchanged"].push_back(variable);
  }
  if (consequence_rules.is_array()) {
    for (const auto& rule : consequence_rules) {
      if (!rule.is_object()) continue;
      if (Json entry = consequence(rule, a, b); !entry.is_null())
        out["consequences"].push_back(std::move(entry));
    }
  }
  return out;
}

std::vector<std::string_view> variables() {
  std::vector<std::string_view> out;
  for (const Field& field : recipe_schema().fields()) {
    if (field.variable.empty() || field.label) continue;
    if (std::find(out.begin(), out.end(), field.variable) == out.end())
      out.push_back(field.variable);
  }
  return out;
}

}  // namespace anvil::recipe
