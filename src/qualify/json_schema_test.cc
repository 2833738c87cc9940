#include "qualify/json_schema.h"

#include <gtest/gtest.h>

namespace anvil::qualify {
namespace {

const Json kSchema = Json::parse(R"({
  "type":"object","additionalProperties":false,"required":["city","guests"],
  "properties":{
    "city":{"type":"string","minLength":2},
    "guests":{"type":"integer","minimum":1,"maximum":9},
    "price":{"type":"number"},
    "names":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2},
    "level":{"enum":["low","high"]},
    "note":{"type":["string","null"]}}})");

std::string check(const char* text) {
  return to_string(validate_schema(kSchema, Json::parse(text)));
}

TEST(JsonSchema, AcceptsWhatFits) {
  EXPECT_EQ(check(R"({"city":"Oslo","guests":3})"), "");
  EXPECT_EQ(
      check(R"({"city":"Oslo","guests":3.0,"price":2,"names":["a"],"level":"low","note":null})"),
      "");
}

TEST(JsonSchema, NamesEveryViolationWithItsPlace) {
  EXPECT_EQ(check("[]"), "the value is an array, must be an object");
  EXPECT_EQ(check(R"({"city":"Oslo"})"), "/guests missing");
  EXPECT_EQ(check(R"({"city":"Oslo","guests":"3"})"), "/guests is a string, must be an integer");
  EXPECT_EQ(check(R"({"city":"Oslo","guests":2.5})"), "/guests is a number, must be an integer");
  EXPECT_EQ(check(R"({"city":"Oslo","guests":true})"), "/guests is a boolean, must be an integer");
  EXPECT_EQ(check(R"({"city":"Oslo","guests":10})"), "/guests is 10, must be at most 9");
  EXPECT_EQ(check(R"({"city":"Oslo","guests":0})"), "/guests is 0, must be at least 1");
  EXPECT_EQ(check(R"({"city":"O","guests":1})"), "/city has 1 characters, must have at least 2");
  EXPECT_EQ(check(R"({"city":"Oslo","guests":1,"extra":1})"), "/extra is not declared");
  EXPECT_EQ(check(R"({"city":"Oslo","guests":1,"names":["a",2]})"),
            "/names/1 is an integer, must be a string");
  EXPECT_EQ(check(R"({"city":"Oslo","guests":1,"names":[]})"),
            "/names has 0 items, must have at least 1");
  EXPECT_EQ(check(R"({"city":"Oslo","guests":1,"level":"mid"})"),
            "/level is \"mid\", must be one of [\"low\",\"high\"]");
  EXPECT_EQ(check(R"({"city":"Oslo","guests":1,"note":4})"),
            "/note is an integer, must be a string or null");
}

TEST(JsonSchema, CountsCharactersNotBytes) {
  const Json schema = {{"maxLength", 2}};
  EXPECT_TRUE(validate_schema(schema, "åé").empty());
  EXPECT_FALSE(validate_schema(schema, "abc").empty());
}

TEST(JsonSchema, EscapesPointers) {
  const Json schema = {{"additionalProperties", {{"type", "string"}}}};
  const auto violations = validate_schema(schema, Json{{"a/b~c", 1}});
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].pointer, "/a~1b~0c");
}

TEST(JsonSchema, RefusesARuleItDoesNotEnforce) {
  EXPECT_NE(to_string(validate_schema(Json{{"pattern", "^a"}}, "b")).find("does not enforce"),
            std::string::npos);
}

TEST(JsonSchema, BooleanSchemas) {
  EXPECT_TRUE(validate_schema(true, 1).empty());
  EXPECT_FALSE(validate_schema(false, 1).empty());
}

}  // namespace
}  // namespace anvil::qualify
