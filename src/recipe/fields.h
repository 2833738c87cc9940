#pragma once

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "recipe/diagnostic.h"
#include "recipe/toml_document.h"

namespace anvil::recipe {

enum class FieldType {
  kText,
  kInteger,
  kNumber,  // integer or decimal; kept as a decimal
  kBool,
  kScalar,  // text, number or bool
  kTextList,
  kIntegerList,
  kNumberList,
  kLength,  // integer, or a table that says how a length is distributed; what is inside the table
            // is not checked
  kAny,     // anything, tables too; nothing inside is checked
};

// What a text (or each text of a list) must look like.
enum class FieldForm {
  kFree,
  kLine,             // not empty, no line break, no NUL
  kName,             // letters, digits and . _ - only
  kCommit,           // 40 hex digits
  kDigest,           // 64 hex digits (SHA-256)
  kUrl,              // http:// or https:// with a host
  kSecretReference,  // env:NAME or file:PATH
  kDate,             // YYYY-MM-DD
};

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// One field that a file may have. Schemas are tables of these; checking, suggestions, canonical
// form, comparison and the reference documents are all read from them.
//
// `path`: dotted; "[]" marks an array of tables ("source[].url"), "*" a map with free keys
// ("launch.env.*").
struct Field {
  std::string_view path;
  FieldType type = FieldType::kText;
  std::string_view unit = {};
  double min = -kNoLimit;  // of numbers, and of each number in a list
  double max = kNoLimit;
  std::vector<std::string_view> choices = {};  // of texts, and of each text in a list
  FieldForm form = FieldForm::kFree;
  Json fallback = nullptr;         // the default; null = none
  std::string_view variable = {};  // what a difference in it changes ("speculation")
  bool label = false;              // says something about the file, does not identify the thing
  bool required = false;           // within its table, if that table is there
  std::string_view doc = {};
};

// What a table of a file is for, for the reference documents: {"serving", "How it is served."}.
struct TableDoc {
  std::string_view path;
  std::string_view doc;
};

// A file form. Immutable; the fields must outlive nothing but it.
class Schema {
 public:
  // `name` is the value that the file's key `schema` must have ("anvil/recipe/v1"), `what` the
  // word for such a file in messages ("recipe"). The field `schema` itself is added.
  Schema(std::string name, std::string what, std::vector<Field> fields,
         std::vector<TableDoc> tables = {});
  ~Schema();
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;

  const std::string& name() const { return name_; }
  const std::string& what() const { return what_; }
  const std::vector<Field>& fields() const { return fields_; }
  const std::vector<TableDoc>& tables() const { return tables_; }

  // The field that a path in a document is about ("source[2].url" -> "source[].url"), or nullptr.
  const Field* find(std::string_view path) const;

  // Everything that breaks the table: unknown keys (with a suggestion), types, ranges, choices,
  // forms, missing fields. All of it in one go, in file order.
  std::vector<Diagnostic> check(const TomlDocument& document) const;

  // The document with every default filled in. Arrays of tables get the defaults of each element.
  Json with_defaults(const Json& document) const;
  // The identifying part of the document: no labels, nothing that equals its default, no empty
  // tables, decimals where the type is a number.
  Json identity(const Json& document) const;
  // Every value in the document with its path, in path order; maps and arrays of tables are opened,
  // plain lists are one value. Defaults are included when they stand in no array of tables.
  std::map<std::string, Json> flatten(const Json& document) const;

  struct Node;

 private:
  std::string name_, what_;
  std::vector<Field> fields_;
  std::vector<TableDoc> tables_;
  std::unique_ptr<Node> root_;
};

// "integer, tokens, 1 to 4194304": type, unit, range and choices as they stand in messages and
// documents.
std::string describe(const Field& field);

// Markdown: one table of fields per table of the file, in the order of the schema.
std::string reference(const Schema& schema);

const Schema& recipe_schema();
const Schema& policy_schema();
const Schema& suite_schema();
const Schema& host_schema();

}  // namespace anvil::recipe
