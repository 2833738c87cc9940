#include "recipe/fields.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "recipe/schema_tree.h"

namespace anvil::recipe {

namespace {

constexpr size_t kMaxChoicesInTable = 12;

std::string limit(double value) {
  if (std::abs(value) <= 1e15 && value == std::floor(value))
    return std::to_string(static_cast<int64_t>(value));
  return base::format_number(value);
}

std::string_view form_words(FieldForm form) {
  switch (form) {
    case FieldForm::kFree:
      return "";
    case FieldForm::kLine:
      return "one line, not empty";
    case FieldForm::kName:
      return "letters, digits and . _ -";
    case FieldForm::kCommit:
      return "40 hex digits";
    case FieldForm::kDigest:
      return "64 hex digits";
    case FieldForm::kUrl:
      return "http://HOST:PORT, https://HOST:PORT or unix:/PATH";
    case FieldForm::kSecretReference:
      return "env:NAME or file:PATH";
    case FieldForm::kDate:
      return "YYYY-MM-DD";
  }
  return "";
}

std::string_view type_words(FieldType type) {
  switch (type) {
    case FieldType::kText:
      return "text";
    case FieldType::kInteger:
      return "integer";
    case FieldType::kNumber:
      return "number";
    case FieldType::kBool:
      return "true or false";
    case FieldType::kScalar:
      return "number, text, or true or false";
    case FieldType::kTextList:
      return "list of texts";
    case FieldType::kIntegerList:
      return "list of integers";
    case FieldType::kNumberList:
      return "list of numbers";
    case FieldType::kLength:
      return "integer or distribution table";
    case FieldType::kAny:
      return "anything";
  }
  return "";
}

// Decimals where the type is a number, so that 1 and 1.0 are one value.
Json normal(const Field& field, const Json& value) {
  if (field.type == FieldType::kNumber && value.is_number()) return value.get<double>();
  if (field.type == FieldType::kNumberList && value.is_array()) {
    Json out = Json::array();
    for (const auto& element : value) {
      if (element.is_number())
        out.push_back(element.get<double>());
      else
        out.push_back(element);
    }
    return out;
  }
  return value;
}

Json fill(const Schema::Node& node, const Json& document) {
  Json out = Json::object();
  if (document.is_object()) {
    for (const auto& [key, value] : document.items()) {
      const Schema::Node* child = node.child(key);
      if (!child)
        out[key] = value;
      else if (child->field)
        out[key] = normal(*child->field, value);
      else if (child->array && value.is_array()) {
        out[key] = Json::array();
        for (const auto& element : value) out[key].push_back(fill(*child, element));
      } else
        out[key] = fill(*child, value);
    }
  }
  for (const auto& [key, child] : node.children) {
    if (out.contains(key)) continue;
    if (child->field) {
      if (!child->field->fallback.is_null())
        out[key] = normal(*child->field, child->field->fallback);
    } else if (!child->array) {
      Json below = fill(*child, nullptr);
      if (!below.empty()) out[key] = std::move(below);
    }
  }
  return out;
}

Json strip(const Schema::Node& node, const Json& document) {
  Json out = Json::object();
  if (!document.is_object()) return out;
  for (const auto& [key, value] : document.items()) {
    const Schema::Node* child = node.child(key);
    if (!child) continue;
    if (child->field) {
      if (child->field->label || value == child->field->fallback) continue;
      out[key] = normal(*child->field, value);
    } else if (child->array && value.is_array()) {
      Json elements = Json::array();
      bool says_something = false;
      for (const auto& element : value) {
        elements.push_back(strip(*child, element));
        says_something = says_something || !elements.back().empty();
      }
      if (says_something) out[key] = std::move(elements);
    } else {
      Json below = strip(*child, value);
      if (!below.empty()) out[key] = std::move(below);
    }
  }
  return out;
}

void open(const Schema::Node& node, const Json& document, const std::string& path,
          std::map<std::string, Json>& out) {
  for (const auto& [key, value] : document.items()) {
    const Schema::Node* child = node.child(key);
    if (!child) continue;
    const std::string below = path_join(path, key);
    if (child->field) {
      out[below] = normal(*child->field, value);
    } else if (child->array && value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i)
        if (value[i].is_object())
          open(*child, value[i], below + "[" + std::to_string(i) + "]", out);
    } else if (value.is_object()) {
      open(*child, value, below, out);
    }
  }
}

std::string cell(std::string_view text) {
  return base::replace_all(std::string(text), "|", "\\|");
}

// The table that a field stands in, and its name there: "model.artifact[]" and "sha256";
// "launch" and "env.*".
std::pair<std::string_view, std::string_view> split_field(std::string_view path) {
  std::string_view look = path;
  if (look.ends_with(".*")) look.remove_suffix(2);
  const auto dot = look.rfind('.');
  if (dot == std::string_view::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

}  // namespace

Schema::Schema(std::string name, std::string what, std::vector<Field> fields,
               std::vector<TableDoc> tables)
    : name_(std::move(name)),
      what_(std::move(what)),
      fields_(std::move(fields)),
      tables_(std::move(tables)),
      root_(std::make_unique<Node>()) {
  fields_.insert(
      fields_.begin(),
      Field{
          .path = "schema", .choices = {name_}, .required = true, .doc = "The form of this file."});
  for (const Field& field : fields_) {
    Node* node = root_.get();
    for (std::string_view part : base::split(field.path, '.')) {
      const bool array = part.ends_with("[]");
      if (array) part.remove_suffix(2);
      auto& next = part == "*" ? node->any : node->children[std::string(part)];
      if (!next) next = std::make_unique<Node>();
      node = next.get();
      node->array = node->array || array;
    }
    node->field = &field;
  }
}

Schema::~Schema() = default;

const Field* Schema::find(std::string_view path) const {
  const auto parts = split_path(path);
  if (!parts) return nullptr;
  const Node* node = root_.get();
  for (const auto& part : *parts) {
    node = node->child(part.key);
    if (!node) return nullptr;
  }
  return node->field;
}

Json Schema::with_defaults(const Json& document) const {
  return fill(*root_, document);
}

Json Schema::identity(const Json& document) const {
  return strip(*root_, document);
}

std::map<std::string, Json> Schema::flatten(const Json& document) const {
  std::map<std::string, Json> out;
  for (const Field& field : fields_) {
    if (field.fallback.is_null() || field.path.find_first_of("[*") != std::string_view::npos)
      continue;
    out[std::string(field.path)] = normal(field, field.fallback);
  }
  if (document.is_object()) open(*root_, document, "", out);
  return out;
}

std::string describe(const Field& field) {
  std::string out(type_words(field.type));
  if (!field.unit.empty()) out += ", " + std::string(field.unit);
  const bool low = field.min != -kNoLimit;
  const bool high = field.max != kNoLimit;
  if (low && high)
    out += ", " + limit(field.min) + " to " + limit(field.max);
  else if (low)
    out += ", at least " + limit(field.min);
  else if (high)
    out += ", at most " + limit(field.max);
  if (!field.choices.empty()) {
    out += field.choices.size() == 1 ? ": " : ", one of ";
    for (size_t i = 0; i < field.choices.size(); ++i)
      out += (i ? ", " : "") + ("\"" + std::string(field.choices[i]) + "\"");
  }
  if (const auto words = form_words(field.form); !words.empty()) out += ", " + std::string(words);
  return out;
}

std::string reference(const Schema& schema) {
  std::vector<std::string_view> order;
  std::map<std::string_view, std::string> rows;
  std::map<std::string_view, std::vector<std::vector<std::string_view>>> long_lists;
  for (Field field : schema.fields()) {
    const auto [table, key] = split_field(field.path);
    if (!rows.contains(table)) order.push_back(table);
    // A long list of choices stands once below its table.
    std::string below;
    if (field.choices.size() > kMaxChoicesInTable) {
      auto& lists = long_lists[table];
      if (std::find(lists.begin(), lists.end(), field.choices) == lists.end())
        lists.push_back(field.choices);
      field.choices.clear();
      below = ", one of those below";
    }
    std::string meaning = cell(field.doc);
    if (field.required) meaning = "**Required.** " + meaning;
    std::string kind = field.label ? "*label*" : std::string(field.variable);
    rows[table] += "| `" + std::string(key) + "` | " + cell(describe(field)) + below + " | " +
                   (field.fallback.is_null() ? "" : "`" + cell(field.fallback.dump()) + "`") +
                   " | " + kind + " | " + meaning + " |\n";
  }
  std::string out;
  for (const std::string_view table : order) {
    const std::string name = base::replace_all(std::string(table), "[]", "");
    if (table.empty())
      out += "### Top of the file\n\n";
    else if (table.ends_with("[]"))
      out += "### `[[" + name + "]]`\n\n";
    else
      out += "### `[" + name + "]`\n\n";
    for (const TableDoc& doc : schema.tables())
      if (doc.path == table) out += std::string(doc.doc) + "\n\n";
    out += "| key | value | default | variable | meaning |\n|---|---|---|---|---|\n" + rows[table] +
           "\n";
    for (const auto& choices : long_lists[table]) {
      out += "Choices:";
      for (const std::string_view choice : choices) out += " `" + std::string(choice) + "`";
      out += "\n\n";
    }
  }
  return out;
}

}  // namespace anvil::recipe
