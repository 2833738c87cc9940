#include "report/text.h"

#include <gtest/gtest.h>

#include "report/html.h"

namespace anvil::report {
namespace {

TEST(Escape, MakesMarkupHarmless) {
  EXPECT_EQ(escape_html("<script>alert(\"1\" & '2')</script>"),
            "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;");
}

TEST(Escape, ShowsControlCharactersInsteadOfSendingThem) {
  EXPECT_EQ(visible(std::string("a\x00"
                                "b\x1b[31m\x7f",
                                9)),
            "a\xE2\x90\x80"
            "b\xE2\x90\x9B[31m\xE2\x90\xA1");
  EXPECT_EQ(visible("line\r\nnext\ttab"), "line\nnext\ttab");
  EXPECT_EQ(visible("\xC2\x85"), "[U+0085]");
}

TEST(Escape, NamesCharactersThatChangeDirection) {
  EXPECT_EQ(visible("\xE2\x80\xAEgnp.exe\xE2\x80\xAC"), "[U+202E]gnp.exe[U+202C]");
  EXPECT_EQ(visible("\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D"), "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D");
}

TEST(Escape, ReplacesInvalidUtf8) {
  EXPECT_EQ(visible("a\xff\xc3(\xed\xa0\x80"),
            "a\xEF\xBF\xBD\xEF\xBF\xBD(\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Escape, KeepsMarkdownTablesWhole) {
  EXPECT_EQ(escape_markdown("a|b\n`c` <d> @team *e*"),
            "a\\|b \\`c\\` &lt;d&gt; @\xE2\x80\x8Bteam \\*e\\*");
}

TEST(Escape, HtmlTakesForeignTextOnlyEscaped) {
  Html out;
  out << "<p";
  out.attribute("title", "\" onload=\"x") << ">";
  out.text("<b>") << "</p>";
  EXPECT_EQ(out.str(), "<p title=\"&quot; onload=&quot;x\">&lt;b&gt;</p>");
}

TEST(Cut, EndsAtACharacter) {
  EXPECT_EQ(cut_bytes("abc", 3), "abc");
  EXPECT_EQ(cut_bytes("ab\xE2\x82\xAC", 4), "ab");
  EXPECT_EQ(cut_bytes("ab\xE2\x82\xAC!", 5), "ab\xE2\x82\xAC");
  EXPECT_EQ(cut_bytes("\x80\x80\x80\x80\x80\x80\x80", 6).size(), 2u);
  EXPECT_EQ(ellipsis("\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC", 2), "\xE2\x82\xAC\xE2\x80\xA6");
  EXPECT_EQ(ellipsis("abc", 3), "abc");
  EXPECT_EQ(length("\xE2\x82\xAC"
                   "a"),
            2u);
}

TEST(Numbers, HaveThreeSignificantDigits) {
  EXPECT_EQ(figure(0), "0");
  EXPECT_EQ(figure(0.012345), "0.0123");
  EXPECT_EQ(figure(0.9999), "1.00");
  EXPECT_EQ(figure(9.999), "10.0");
  EXPECT_EQ(figure(31.24), "31.2");
  EXPECT_EQ(figure(99.97), "100");
  EXPECT_EQ(figure(1234.6), "1,235");
  EXPECT_EQ(figure(-1234567), "-1,234,567");
  EXPECT_EQ(fixed(-0.0001, 2), "0.00");
  EXPECT_EQ(fixed(2.5, 0), "2");
  EXPECT_EQ(count(1000), "1,000");
  EXPECT_EQ(count(-999), "-999");
}

TEST(Numbers, CarryReadableUnitsOfTime) {
  EXPECT_EQ(milliseconds(0.85), "850 us");
  EXPECT_EQ(milliseconds(31.24), "31.2 ms");
  EXPECT_EQ(milliseconds(999.7), "1.00 s");
  EXPECT_EQ(seconds(0), "0 ms");
  EXPECT_EQ(seconds(12.34), "12.3 s");
  EXPECT_EQ(seconds(200), "3 min 20 s");
  EXPECT_EQ(seconds(3 * 3600 + 120), "3 h 2 min");
}

TEST(Numbers, OfGatesNeverHideTheDifferenceThatDecided) {
  EXPECT_EQ(gate_value(100.4321987, 250), "100.43");
  EXPECT_EQ(gate_value(100.0000001, 100), "100.0000001");
  EXPECT_EQ(gate_value(100.0, 100), "100");
  EXPECT_EQ(gate_value(true, true), "true");
  EXPECT_EQ(gate_value("pass", "pass"), "pass");
  EXPECT_EQ(gate_value(1234567.0, 5), "1234567");
}

}  // namespace
}  // namespace anvil::report
