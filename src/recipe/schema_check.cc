#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "recipe/fields.h"
#include "recipe/forms.h"
#include "recipe/schema_tree.h"

namespace anvil::recipe {

namespace {

std::string found_words(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object:
      return "a table";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::string: {
      std::string text = value.get<std::string>();
      if (text.size() > 60) text = base::to_valid_utf8(text.substr(0, 60)) + "...";
      return "the text " + Json(text).dump();
    }
    case Json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    case Json::value_t::number_float:
      return "the decimal " + base::format_number(value.get<double>());
    default:
      return "the integer " + value.dump();
  }
}

std::string header(std::string_view path, bool array) {
  std::string name;
  bool skip = false;
  for (char c : path) {
    if (c == '[') skip = true;
    if (!skip) name += c;
    if (c == ']') skip = false;
  }
  return array ? "[[" + name + "]]" : "[" + name + "]";
}

// The type of one element of a list type.
FieldType element_type(FieldType type) {
  switch (type) {
    case FieldType::kTextList:
      return FieldType::kText;
    case FieldType::kIntegerList:
      return FieldType::kInteger;
    case FieldType::kNumberList:
      return FieldType::kNumber;
    default:
      return type;
  }
}

bool is_list(FieldType type) {
  return element_type(type) != type;
}

bool has_type(FieldType type, const Json& value) {
  switch (type) {
    case FieldType::kText:
      return value.is_string();
    case FieldType::kInteger:
      return value.is_number_integer();
    case FieldType::kNumber:
      return value.is_number();
    case FieldType::kBool:
      return value.is_boolean();
    case FieldType::kScalar:
      return value.is_number() || value.is_string() || value.is_boolean();
    case FieldType::kTextList:
    case FieldType::kIntegerList:
    case FieldType::kNumberList:
      return value.is_array();
    case FieldType::kLength:
      return value.is_number_integer() || value.is_object();
    case FieldType::kAny:
      return true;
  }
  return false;
}

class Checker {
 public:
  Checker(const Schema& schema, const TomlDocument& document)
      : schema_(schema), document_(document) {}

  void table(const Schema::Node& node, const Json& value, const std::string& path) {
    for (const auto& [key, below] : value.items()) {
      const std::string where = path_join(path, key);
      if (const Schema::Node* child = node.child(key))
        entry(*child, below, where);
      else
        unknown(node, key, where);
    }
    for (const auto& [key, child] : node.children)
      if (child->field && child->field->required && !value.contains(key))
        report(path, path_join(path, key), "missing",
               "add " + key + " = ..., " + describe(*child->field));
  }

  std::vector<Diagnostic> take() {
    sort_by_position(diagnostics_);
    return std::move(diagnostics_);
  }

 private:
  void entry(const Schema::Node& node, const Json& value, const std::string& path) {
    if (node.field) {
      field(*node.field, value, path);
    } else if (node.array) {
      if (!value.is_array()) {
        report(path, path, "found " + found_words(value),
               "wanted an array of tables, written " + header(path, true));
        return;
      }
      for (size_t i = 0; i < value.size(); ++i) {
        const std::string below = path + "[" + std::to_string(i) + "]";
        if (value[i].is_object())
          table(node, value[i], below);
        else
          report(below, below, "found " + found_words(value[i]),
                 "wanted a table, written " + header(path, true));
      }
    } else if (value.is_object()) {
      table(node, value, path);
    } else {
      report(path, path, "found " + found_words(value),
             "wanted a table, written " + header(path, false));
    }
  }

  void field(const Field& field, const Json& value, const std::string& path) {
    if (!has_type(field.type, value)) {
      report(path, path, "found " + found_words(value), "wanted " + describe(field));
      return;
    }
    if (!is_list(field.type)) {
      single(field, value, path);
      return;
    }
    for (size_t i = 0; i < value.size(); ++i) {
      const std::string below = path + "[" + std::to_string(i) + "]";
      if (has_type(element_type(field.type), value[i]))
        single(field, value[i], below);
      else
        report(below, below, "found " + found_words(value[i]), "wanted " + describe(field));
    }
  }

  void single(const Field& field, const Json& value, const std::string& path) {
    if (value.is_number()) {
      const double number = value.get<double>();
      if (!std::isfinite(number))
        report(path, path, "is not a finite number", "wanted " + describe(field));
      else if (number < field.min)
        report(path, path, value.dump() + " is too small", "wanted " + describe(field));
      else if (number > field.max)
        report(path, path, value.dump() + " is too large", "wanted " + describe(field));
      return;
    }
    if (!value.is_string()) return;
    const auto& text = value.get_ref<const std::string&>();
    if (!field.choices.empty()) {
      std::vector<std::string> choices(field.choices.begin(), field.choices.end());
      if (std::find(choices.begin(), choices.end(), text) != choices.end()) return;
      std::string remedy = "wanted " + describe(field);
      if (const auto near = base::did_you_mean(text, choices))
        remedy = "did you mean \"" + *near + "\"? " + remedy;
      report(path, path, "found " + found_words(value), std::move(remedy));
      return;
    }
    if (!has_form(field.form, text))
      report(path, path, "found " + found_words(value), "wanted " + describe(field));
  }

  void unknown(const Schema::Node& node, const std::string& key, const std::string& path) {
    std::vector<std::string> siblings;
    for (const auto& [name, child] : node.children) siblings.push_back(name);
    std::string remedy;
    if (const auto near = base::did_you_mean(key, siblings)) {
      remedy = "did you mean \"" + *near + "\"?";
    } else {
      for (const Field& field : schema_.fields()) {
        const auto dot = field.path.rfind('.');
        if (dot == std::string_view::npos || field.path.substr(dot + 1) != key) continue;
        const auto parent = field.path.substr(0, dot);
        remedy = "\"" + key + "\" belongs into " + header(parent, parent.ends_with("[]"));
        break;
      }
      if (remedy.empty() && siblings.size() <= 16)
        remedy = "known here: " + base::join(siblings, ", ");
    }
    report(path, path, "unknown key", std::move(remedy));
  }

  // `near` is where to point, `key` what it is about: a missing key has no place of its own.
  void report(const std::string& near, const std::string& key, std::string problem,
              std::string remedy) {
    Position at = document_.position(near);
    at.key = key;
    diagnostics_.push_back(
        {Diagnostic::Severity::kError, std::move(at), std::move(problem), std::move(remedy)});
  }

  const Schema& schema_;
  const TomlDocument& document_;
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace

std::vector<Diagnostic> Schema::check(const TomlDocument& document) const {
  // A file of another form breaks every line of this table; saying which form it has is enough.
  if (const auto found = document.value.find("schema");
      found != document.value.end() && found->is_string() && *found != name_) {
    const auto& text = found->get_ref<const std::string&>();
    return {{Diagnostic::Severity::kError, document.position("schema"),
             "found " + found_words(text),
             "wanted \"" + name_ + "\": this file is not a " + what_ + " that we know"}};
  }
  Checker checker(*this, document);
  checker.table(*root_, document.value, "");
  return checker.take();
}

}  // namespace anvil::recipe
