#include "base/json.h"

#include <gtest/gtest.h>

namespace anvil::base {
namespace {

TEST(ParseJson, RefusesWhatIsNotOneStrictDocument) {
  for (const char* bad :
       {"", "{", "{} x", "{\"a\":1,\"a\":2}", "[1,]", "// c\n{}", "{'a':1}", "nul"}) {
    const auto parsed = parse_json(bad, "doc");
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().kind, Kind::kInvalidInput);
    EXPECT_NE(parsed.error().detail.find("doc"), std::string::npos);
  }
  EXPECT_TRUE(parse_json("{\"a\":{\"x\":1},\"b\":{\"x\":2}}", "doc"))
      << "the same key in two objects is fine";
}

TEST(ParseJson, RefusesAbsurdDepth) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const auto parsed = parse_json(deep, "doc");
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().detail.find("200 levels"), std::string::npos);
}

TEST(Canonical, DoesNotDependOnKeyOrder) {
  const Json a = parse_json("{\"b\":1.5,\"a\":[true,null,\"\\u00e9\"]}", "a").value();
  const Json b =
      parse_json(" { \"a\" : [ true , null , \"\xC3\xA9\" ], \"b\" : 1.50 } ", "b").value();
  EXPECT_EQ(canonical(a), canonical(b));
  EXPECT_EQ(canonical(a), "{\"a\":[true,null,\"\xC3\xA9\"],\"b\":1.5}");
}

TEST(Differences, PointAtTheExactPlace) {
  const Json left =
      parse_json(R"({"lanes":[{"id":"a","p50":1.5},{"id":"b"}],"x/y":1,"n":1})", "l").value();
  const Json right = parse_json(R"({"lanes":[{"id":"a","p50":1.6}],"x/y":2,"n":1})", "r").value();
  std::vector<std::string> pointers;
  for (const auto& difference : differences(left, right)) pointers.push_back(difference.pointer);
  EXPECT_EQ(pointers, (std::vector<std::string>{"/lanes/0/p50", "/lanes/1", "/x~1y"}));
  EXPECT_TRUE(differences(left, left).empty());
  EXPECT_EQ(differences(left, right, 1).size(), 1u);
}

TEST(Differences, IntegerAndFloatAreNotTheSameNumberOnPaper) {
  EXPECT_EQ(differences(Json(1), Json(1.0)).size(), 1u);
  EXPECT_TRUE(differences(Json(1), Json(1u)).empty());
}

}  // namespace
}  // namespace anvil::base
