#include "recipe/expression.h"

#include <gtest/gtest.h>

namespace anvil::recipe {
namespace {

Json field(std::string_view path) {
  static const std::map<std::string, Json, std::less<>> fields = {
      {"serving.max_sequences", 8},
      {"serving.context_tokens", 131072},
      {"speculation.depth", 5},
      {"speculation.method", "dspark"},
      {"serving.prefix_cache", true},
      {"serving.memory_utilisation", 0.975},
      {"serving.efforts", Json::array({"low"})},
      {"model.artifact[0].bytes", 42},
      {"big", INT64_MAX},
      {"small", INT64_MIN}};
  const auto found = fields.find(path);
  return found == fields.end() ? Json() : found->second;
}

TEST(Expression, Values) {
  const std::pair<const char*, Json> cases[] = {
      {"1", 1},
      {"1 + 2 * 3", 7},
      {"(1 + 2) * 3", 9},
      {"10 - 3 - 2", 5},
      {"7 / 2", 3},
      {"-7 / 2", -3},
      {"7 % 4", 3},
      {"- -2", 2},
      {"2.5 * 2", 5.0},
      {"7.0 / 2", 3.5},
      {"serving.context_tokens * serving.max_sequences", 1048576},
      {"max(serving.max_sequences, 16)", 16},
      {"min(serving.max_sequences, speculation.depth + 1)", 6},
      {"speculation.depth > 0 ? serving.max_sequences * (speculation.depth + 1) : 32", 48},
      {"absent.depth > 0 ? 1 : 2", 2},
      {"absent.field", 0},
      {"absent.field + 1", 1},
      {"absent.field == ''", true},
      {"absent.field == 0", true},
      {"speculation.method == 'dspark'", true},
      {"speculation.method != 'none' && speculation.depth >= 5", true},
      {"speculation.method == 'none' || speculation.depth == 5", true},
      {"!serving.prefix_cache", false},
      {"serving.prefix_cache == true", true},
      {"!(1 == 2)", true},
      {"1 < 2", true},
      {"2 <= 1", false},
      {"serving.memory_utilisation", 0.975},
      {"serving.efforts", Json::array({"low"})},
      {"model.artifact[0].bytes", 42},
      {"true ? 'a' : 'b'", "a"},
      {"false ? 1 : true ? 2 : 3", 2},
      // A branch that is not taken cannot fail.
      {"absent == 0 ? 1 : 10 / absent", 1},
      {"absent != 0 && 10 / absent > 1", false},
      {"true || 1 / 0", true},
      {"small % -1", 0},
  };
  for (const auto& [text, wanted] : cases) {
    const auto value = evaluate(text, field);
    ASSERT_TRUE(value) << text << ": " << value.error().detail;
    EXPECT_EQ(*value, wanted) << text;
  }
}

TEST(Expression, Errors) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "ends where a value is wanted"},
      {"1 +", "ends where a value is wanted"},
      {"1 2", "column 3: unexpected"},
      {"(1", "wanted ')'"},
      {"max(1)", "wanted ','"},
      {"max(1, 2", "wanted ')'"},
      {"sum(1, 2)", "no function \"sum\""},
      {"1 ? 2", "wanted ':'"},
      {"'open", "no closing quote"},
      {"1 / 0", "division by zero"},
      {"1 % absent", "division by zero"},
      {"big + 1", "does not fit"},
      {"big * 2", "does not fit"},
      {"small / -1", "does not fit"},
      {"small - 1", "does not fit"},
      {"99999999999999999999", "not a number"},
      {"1.2.3", "not a number"},
      {"speculation.method + 1", "calculates with the text 'dspark'"},
      {"serving.efforts + 1", "list or table"},
      {"speculation.method == 3", "compares a text with a number"},
      {"speculation.method < 'x'", "== and != only"},
      {"$", "unexpected"},
      {std::string(100, '('), "nested deeper"},
      {std::string(100, '-') + "1", "nested deeper"},
      {std::string(5000, ' ') + "1", "longer than 4096"},
      {"false ? (1 : 2", "wanted ')'"},
  };
  for (const auto& [text, words] : cases) {
    const auto value = evaluate(text, field);
    ASSERT_FALSE(value) << text << " = " << value->dump();
    EXPECT_EQ(value.error().kind, Kind::kInvalidInput);
    EXPECT_NE(value.error().detail.find(words), std::string::npos) << value.error().detail;
  }
}

TEST(Expression, NamesOfAllBranches) {
  const auto names = names_in("a.x > 0 ? b.y : max(c.z, a.x) / 0");
  ASSERT_TRUE(names) << names.error().detail;
  EXPECT_EQ(*names, (std::vector<std::string>{"a.x", "b.y", "c.z"}));
  EXPECT_FALSE(names_in("a.x >"));
}

}  // namespace
}  // namespace anvil::recipe
