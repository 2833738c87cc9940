#include "base/strings.h"

#include <gtest/gtest.h>

namespace anvil::base {
namespace {

TEST(Strings, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string_view>{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
}

TEST(Strings, TrimTakesOnlyTheEnds) {
  EXPECT_EQ(trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Strings, IntegersAreWholeOrNothing) {
  EXPECT_EQ(parse_int("-12"), -12);
  for (const char* bad : {"", "+1", "1 ", " 1", "0x10", "1.0", "9223372036854775808"})
    EXPECT_FALSE(parse_int(bad)) << bad;
  EXPECT_EQ(parse_double("2.5e3"), 2500.0);
  EXPECT_FALSE(parse_double("2.5GiB"));
}

TEST(Strings, Utf8IsCheckedToTheLetter) {
  EXPECT_FALSE(first_invalid_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"));
  const struct {
    std::string_view bytes;
    size_t at;
  } kBad[] = {
      {"ab\xFF", 2},
      {"\xC0\x80", 0},  // overlong
      {"\xE0\x80\x80", 0},
      {"a\xED\xA0\x80", 1},  // surrogate
      {"\xF4\x90\x80\x80", 0} /* above U+10FFFF */,
      {"x\xE2\x82", 1},  // cut short
      {"\x80", 0},
  };
  for (const auto& row : kBad) EXPECT_EQ(first_invalid_utf8(row.bytes), row.at);
  EXPECT_EQ(to_valid_utf8("a\xFF\x62"), "a\xEF\xBF\xBD\x62");
}

TEST(Strings, SuggestsOnlyLikelyTypingErrors) {
  const std::vector<std::string> keys = {"context_tokens", "max_sequences", "kv_dtype", "port"};
  EXPECT_EQ(did_you_mean("contxt_tokens", keys), "context_tokens");
  EXPECT_EQ(did_you_mean("prot", keys), "port");
  EXPECT_EQ(did_you_mean("Max_Sequences", keys), "max_sequences");
  EXPECT_FALSE(did_you_mean("temperature", keys));
  EXPECT_FALSE(did_you_mean("", keys));
}

TEST(Strings, FormatsForPeople) {
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(253113024), "241.4 MiB");
  EXPECT_EQ(format_duration(850'000), "850 us");
  EXPECT_EQ(format_duration(1'234'000), "1.23 ms");
  EXPECT_EQ(format_duration(12'340'000'000), "12.3 s");
  EXPECT_EQ(format_duration(200'000'000'000), "3 min 20 s");
  EXPECT_EQ(format_number(0.1), "0.1");
}

TEST(Strings, ShellWordsComeBackWhole) {
  EXPECT_EQ(shell_quote("--port=8080"), "--port=8080");
  EXPECT_EQ(shell_quote("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quote(""), "''");
}

}  // namespace
}  // namespace anvil::base
