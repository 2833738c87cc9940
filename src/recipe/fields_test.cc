#include "recipe/fields.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"

namespace anvil::recipe {
namespace {

const Schema& sample() {
  static const Schema schema(
      "anvil/sample/v1", "sample",
      {
          {.path = "name", .form = FieldForm::kName, .label = true, .required = true},
          {.path = "serving.context_tokens",
           .type = FieldType::kInteger,
           .unit = "tokens",
           .min = 1,
           .max = 1000,
           .variable = "context"},
          {.path = "serving.share",
           .type = FieldType::kNumber,
           .min = 0.5,
           .max = 1,
           .fallback = 0.75},
          {.path = "serving.method", .choices = {"none", "dspark"}, .fallback = "none"},
          {.path = "serving.list", .type = FieldType::kIntegerList, .min = 0},
          {.path = "env.*"},
          {.path = "source[].url", .required = true},
          {.path = "source[].weight", .type = FieldType::kInteger, .fallback = 3},
          {.path = "source[].note", .label = true},
          {.path = "rule[].when.*", .type = FieldType::kAny},
      });
  return schema;
}

std::vector<std::string> problems(const std::string& text) {
  const auto loaded = parse_toml(text, "f");
  EXPECT_TRUE(loaded.ok()) << text;
  std::vector<std::string> out;
  for (const auto& diagnostic : sample().check(*loaded.value)) out.push_back(to_string(diagnostic));
  return out;
}

TEST(Schema, AcceptsWhatTheTableSays) {
  EXPECT_TRUE(problems("schema = 'anvil/sample/v1'\nname = 'n'\n[serving]\ncontext_tokens = 10\n"
                       "share = 1\nmethod = 'dspark'\nlist = [1]\n[env]\nANY = 'x'\n"
                       "[[source]]\nurl = 'u'\n[[rule]]\nwhen = { \"a.b\" = [1, 2] }\n")
                  .empty());
}

TEST(Schema, ReportsEverythingInFileOrder) {
  const auto found = problems(
      "schema = 'anvil/sample/v1'\n"
      "[serving]\n"
      "contxt_tokens = 5\n"
      "share = 2\n"
      "method = 'dsparc'\n"
      "list = [1, 'x', -2]\n"
      "[[source]]\n"
      "note = 'no url'\n"
      "[env]\n"
      "A = 3\n"
      "[rule]\n"
      "x = 1\n"
      "[method]\n");
  ASSERT_EQ(found.size(), 10u) << base::join(found, "\n");
  EXPECT_EQ(found[0], "f: name: missing; add name = ..., text, letters, digits and . _ -");
  EXPECT_EQ(found[1],
            "f:3:1: serving.contxt_tokens: unknown key; did you mean \"context_tokens\"?");
  EXPECT_EQ(found[2], "f:4:1: serving.share: 2 is too large; wanted number, 0.5 to 1");
  EXPECT_EQ(found[3],
            "f:5:1: serving.method: found the text \"dsparc\"; did you mean \"dspark\"? wanted "
            "text, one of \"none\", \"dspark\"");
  EXPECT_EQ(found[4],
            "f:6:12: serving.list[1]: found the text \"x\"; wanted list of integers, at least 0");
  EXPECT_EQ(found[5],
            "f:6:17: serving.list[2]: -2 is too small; wanted list of integers, at least 0");
  EXPECT_EQ(found[6], "f:7:1: source[0].url: missing; add url = ..., text");
  EXPECT_EQ(found[7], "f:10:1: env.A: found the integer 3; wanted text");
  EXPECT_EQ(found[8], "f:11:2: rule: found a table; wanted an array of tables, written [[rule]]");
  EXPECT_EQ(found[9], "f:13:2: method: unknown key; \"method\" belongs into [serving]");
}

TEST(Schema, UnknownKeysElsewhereAreSentHome) {
  const auto found =
      problems("schema = 'anvil/sample/v1'\nname = 'n'\ncontext_tokens = 5\nzzz = 1\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NE(found[0].find("belongs into [serving]"), std::string::npos) << found[0];
  EXPECT_NE(found[1].find("known here: "), std::string::npos) << found[1];
}

TEST(Schema, AnotherFormIsOneProblem) {
  const auto found = problems("schema = 'anvil/policy/v1'\nx = 1\ny = 2\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("this file is not a sample"), std::string::npos) << found[0];
}

TEST(Schema, NonFiniteNumbersAreRefused) {
  for (const char* value : {"nan", "inf", "-inf"}) {
    const auto found = problems(
        std::string("schema = 'anvil/sample/v1'\nname = 'n'\n[serving]\nshare = ") + value + "\n");
    ASSERT_EQ(found.size(), 1u) << value;
    EXPECT_NE(found[0].find("not a finite number"), std::string::npos) << found[0];
  }
}

TEST(Schema, DefaultsIdentityAndFlatten) {
  const auto loaded = parse_toml(
      "schema = 'anvil/sample/v1'\nname = 'n'\n[serving]\nshare = 1\nmethod = 'none'\n"
      "[[source]]\nurl = 'u'\nweight = 3\nnote = 'x'\n",
      "f");
  ASSERT_TRUE(loaded.ok());
  const Json& document = loaded.value->value;
  EXPECT_EQ(sample().with_defaults(document),
            Json::parse(R"({"schema":"anvil/sample/v1","name":"n","serving":{"share":1.0,
              "method":"none"},"source":[{"url":"u","weight":3,"note":"x"}]})"));
  EXPECT_TRUE(sample().with_defaults(document)["serving"]["share"].is_number_float());
  EXPECT_EQ(sample().identity(document),
            Json::parse(R"({"schema":"anvil/sample/v1","serving":{"share":1.0},
              "source":[{"url":"u"}]})"));
  const auto flat = sample().flatten(document);
  EXPECT_EQ(flat.at("serving.method"), "none");
  EXPECT_EQ(flat.at("source[0].url"), "u");
  EXPECT_EQ(sample().find("source[0].url")->path, "source[].url");
  EXPECT_EQ(sample().find("env.ANYTHING")->path, "env.*");
  EXPECT_EQ(sample().find("serving"), nullptr);
  EXPECT_EQ(sample().find("serving.nope"), nullptr);
}

TEST(Schema, ReferenceNamesEveryField) {
  for (const Schema* schema :
       {&recipe_schema(), &policy_schema(), &suite_schema(), &host_schema()}) {
    const std::string text = reference(*schema);
    for (const Field& field : schema->fields()) {
      EXPECT_FALSE(field.doc.empty()) << field.path;
      std::string_view key = field.path;
      if (key.ends_with(".*")) key.remove_suffix(2);
      key = field.path.substr(key.rfind('.') + 1);
      EXPECT_NE(text.find("| `" + std::string(key) + "` |"), std::string::npos) << field.path;
    }
  }
}

TEST(Schema, RecipeFieldsAreLabelsOrBelongToAVariable) {
  for (const Field& field : recipe_schema().fields())
    EXPECT_NE(field.label || field.path == "schema", !field.variable.empty()) << field.path;
}

// A TOML value that is wrong for a type.
std::vector<std::string> wrong_values(FieldType type) {
  switch (type) {
    case FieldType::kText:
      return {"5", "1.5", "true", "['x']", "{ a = 1 }"};
    case FieldType::kInteger:
      return {"'5'", "1.5", "true", "[1]", "{ a = 1 }", "99999999999999"};
    case FieldType::kNumber:
      return {"'5'", "true", "[1]", "{ a = 1 }", "nan"};
    case FieldType::kBool:
      return {"'true'", "1", "1.0", "[true]", "{ a = 1 }"};
    case FieldType::kScalar:
      return {"[1]", "{ a = 1 }"};
    case FieldType::kTextList:
      return {"'x'", "5", "[1]", "['x', 1]", "{ a = 1 }"};
    case FieldType::kIntegerList:
    case FieldType::kNumberList:
      return {"'x'", "5", "['x']", "[1, 'x']", "{ a = 1 }"};
    case FieldType::kLength:
      return {"'5'", "1.5", "true", "[1]", "99999999999999"};
    case FieldType::kAny:
      return {};
  }
  return {};
}

// A document that holds nothing but one field.
std::string document_with(const Schema& schema, const Field& field, const std::string& value) {
  std::string path = base::replace_all(std::string(field.path), "*", "NAME");
  std::string out = field.path == "schema" ? "" : "schema = '" + schema.name() + "'\n";
  std::string table;
  for (auto array = path.find("[]."); array != std::string::npos; array = path.find("[].")) {
    table += (table.empty() ? "" : ".") + path.substr(0, array);
    out += "[[" + table + "]]\n";
    path = path.substr(array + 3);
  }
  return out + path + " = " + value + "\n";
}

TEST(Schema, EveryFieldOfEveryFileRefusesWrongTypes) {
  size_t tried = 0;
  for (const Schema* schema :
       {&recipe_schema(), &policy_schema(), &suite_schema(), &host_schema()}) {
    for (const Field& field : schema->fields()) {
      for (const std::string& value : wrong_values(field.type)) {
        // One number fits the range of a few fields.
        if (value == "99999999999999" && field.max > 99999999999999.0) continue;
        const std::string text = document_with(*schema, field, value);
        const auto loaded = parse_toml(text, "f");
        ASSERT_TRUE(loaded.ok()) << text;
        const auto diagnostics = schema->check(*loaded.value);
        const bool named =
            std::any_of(diagnostics.begin(), diagnostics.end(), [&](const Diagnostic& diagnostic) {
              return schema->find(diagnostic.at.key) == &field && diagnostic.problem != "missing" &&
                     diagnostic.at.line > 0 && diagnostic.remedy.find("wanted") == 0;
            });
        EXPECT_TRUE(named) << text;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 500u);
}

}  // namespace
}  // namespace anvil::recipe
