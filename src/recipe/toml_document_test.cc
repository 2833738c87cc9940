#include "recipe/toml_document.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace anvil::recipe {
namespace {

// A folder that goes away with the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "anvil-toml-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string only(const Loaded<TomlDocument>& loaded) {
  EXPECT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.diagnostics.size(), 1u);
  return loaded.diagnostics.empty() ? "" : to_string(loaded.diagnostics[0]);
}

TEST(TomlDocument, ValuesAndPlaces) {
  const auto loaded = parse_toml(
      "a = 1\n"
      "b = 2.5\n"
      "when = 2026-08-01\n"
      "at = 07:30:00\n"
      "[t]\n"
      "  list = [true,\n"
      "    'x']\n"
      "[[s]]\n"
      "url = 'u0'\n"
      "[[s]]\n"
      "url = 'u1'\n"
      "when = { \"x.y\" = 1 }\n",
      "f.toml");
  ASSERT_TRUE(loaded.ok());
  const TomlDocument& document = *loaded.value;
  EXPECT_EQ(document.value, Json::parse(R"({"a":1,"b":2.5,"when":"2026-08-01","at":"07:30:00",
      "t":{"list":[true,"x"]},"s":[{"url":"u0"},{"url":"u1","when":{"x.y":1}}]})"));
  EXPECT_TRUE(document.value["a"].is_number_integer());
  EXPECT_TRUE(document.value["b"].is_number_float());
  const auto at = [&](std::string_view path) { return base::to_string(document.position(path)); };
  EXPECT_EQ(at("b"), "f.toml:2:1: b");
  EXPECT_EQ(at("t.list"), "f.toml:6:3: t.list");
  EXPECT_EQ(at("t.list[1]"), "f.toml:7:5: t.list[1]");
  EXPECT_EQ(at("s[1].url"), "f.toml:11:1: s[1].url");
  EXPECT_EQ(at("s[1].when.\"x.y\""), "f.toml:12:10: s[1].when.\"x.y\"");
  EXPECT_EQ(document.position("t.missing.deep").line, document.position("t").line);
  EXPECT_EQ(document.position("nowhere").line, 0);
}

TEST(TomlDocument, FindValueWalksPaths) {
  const auto loaded = parse_toml("[[s]]\nm = [[1, 2], [3]]\n\"a.b\" = 4\n", "f");
  ASSERT_TRUE(loaded.ok());
  const Json& value = loaded.value->value;
  ASSERT_NE(find_value(value, "s[0].m[0][1]"), nullptr);
  EXPECT_EQ(*find_value(value, "s[0].m[0][1]"), 2);
  EXPECT_EQ(*find_value(value, "s[0].\"a.b\""), 4);
  for (const char* absent : {"s[1]", "s[0].m[2]", "s.m", "", "s[", "s[x]", "s[-1]", ".s", "s..m",
                             "\"s", "s[0]m", "s[0].m[0][1].deeper"})
    EXPECT_EQ(find_value(value, absent), nullptr) << absent;
}

TEST(TomlDocument, PathsRoundTrip) {
  for (const char* key : {"plain", "a.b", "with \"quote\"", "back\\slash", "sp ace", "[0]"}) {
    const auto parts = split_path(path_join("top", key));
    ASSERT_TRUE(parts) << key;
    ASSERT_EQ(parts->size(), 2u) << key;
    EXPECT_EQ((*parts)[1].key, key);
  }
}

TEST(TomlDocument, RefusesWhatIsNoFile) {
  const Folder folder;
  EXPECT_NE(only(load_toml(folder.file("absent.toml"))).find("absent.toml"), std::string::npos);
  EXPECT_NE(only(load_toml(folder.path())).find("is a directory"), std::string::npos);
}

TEST(TomlDocument, RefusesAHugeFileUnread) {
  const Folder folder;
  const std::string path = folder.file("huge.toml");
  std::ofstream(path).put('x');
  std::filesystem::resize_file(path, 50 << 20);  // sparse: reading it would show NUL bytes instead
  EXPECT_NE(only(load_toml(path)).find("52428800 bytes, the limit is 1048576"), std::string::npos);
  EXPECT_NE(only(parse_toml(std::string(kTomlLimit + 1, '\n'), "f")).find("the limit is 1048576"),
            std::string::npos);
  EXPECT_TRUE(parse_toml(std::string(kTomlLimit, '\n'), "f").ok());
}

TEST(TomlDocument, RefusalsSayWhere) {
  struct Case {
    std::string text;
    std::string place;
    std::string words;
  };
  const Case cases[] = {
      {"a = 1\nb = \"\xff\"\n", "f:2:6", "not UTF-8: the byte at offset 11"},
      {std::string("a = 1\n\0b = 2\n", 13), "f:2:1", "NUL byte at offset 6"},
      {"a = 1\nb = 2\na = 3\n", "f:3:", "not valid TOML"},
      {"[t]\nx = 1\n[t]\ny = 2\n", "f:3:", "not valid TOML"},
      {"a = \n", "f:1:", "not valid TOML"},
      {"a = [1, 2\nb = 3\n", "f:2:", "not valid TOML"},
      {"a = 99999999999999999999\n", "f:1:", "not valid TOML"},
      {"ok = 1\na.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a = 1\n", "f:2:", "16 dotted parts"},
      {"ok = 1\n\u0435 = 2\n", "f:2:1", "outside ASCII"},
      {"ok = 1 \u0319\n", "f:1:8", "outside ASCII"},
      {"ok = \"\"\"x\"\"\"\"\" \u0435\n", "f:1:", "outside ASCII"},
      {"[a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a]\n", "f:1:", "16 dotted parts"},
  };
  for (const auto& c : cases) {
    const std::string message = only(parse_toml(c.text, "f"));
    EXPECT_TRUE(message.starts_with(c.place)) << message;
    EXPECT_NE(message.find(c.words), std::string::npos) << message;
  }
}

TEST(TomlDocument, DotsInTextsAndCommentsAreNotKeys) {
  const std::string dots(100, '.');
  const std::string texts[] = {
      "a = \"" + dots + "\"\n",
      "a = '" + dots + "' # " + dots + "\n",
      "a = \"\"\"\n" + dots + "\"" + dots + "\n\"\"\"\n",
      "a = \'\'\'\n" + dots + "\n\'\'\'\n",
      "a = \"\\\"" + dots + "\"\n",
      "a = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5]\n",
  };
  for (const auto& text : texts) EXPECT_TRUE(parse_toml(text, "f").ok()) << text;
}

TEST(TomlDocument, TextsMayHoldAnyCharacter) {
  const auto loaded = parse_toml(
      "\xef\xbb\xbf# \u0435\n\"k\u0435y\" = 'gr\u00f6\u00dfe'\nb = \"\"\"\u0319\"\"\"\"\"\nc = "
      "'''\u4e2d'''\n",
      "f");
  ASSERT_TRUE(loaded.ok()) << to_string(loaded.diagnostics[0]);
  EXPECT_EQ(loaded.value->value["k\u0435y"], "gr\u00f6\u00dfe");
  EXPECT_EQ(loaded.value->value["b"], "\u0319\"\"");
}

TEST(TomlDocument, DeepNestingIsAnErrorNotACrash) {
  EXPECT_FALSE(parse_toml("a = " + std::string(100000, '['), "f").ok());
  std::string inline_tables = "a = ";
  for (int i = 0; i < 5000; ++i) inline_tables += "{b.c.d.e.f = ";
  EXPECT_FALSE(parse_toml(inline_tables, "f").ok());
}

}  // namespace
}  // namespace anvil::recipe
