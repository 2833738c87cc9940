#include "report/campaign.h"

#include <gtest/gtest.h>

#include <map>

#include "base/hash.h"
#include "report/testing/test_folder.h"
#include "report/text.h"

namespace anvil::report {
namespace {

class CampaignReport : public ReportFolder {
 protected:
  struct Compared {
    evidence::Campaign campaign;
    Json comparison;
  };
  // Comparing takes seconds, so each kind is made once for all tests.
  const Compared& compared(const std::string& kind) {
    static std::map<std::string, Compared> made;
    const auto [found, fresh] = made.try_emplace(kind);
    if (!fresh) return found->second;
    auto campaign = evidence::read_campaign(sample_campaign(kind));
    EXPECT_TRUE(campaign) << (campaign ? "" : to_string(campaign.error()));
    auto comparison = evidence::derive_comparison(*campaign);
    EXPECT_TRUE(comparison) << (comparison ? "" : to_string(comparison.error()));
    found->second = {std::move(*campaign), std::move(*comparison)};
    return found->second;
  }
  std::string shown(const std::string& kind, Format format = Format::kHtml,
                    const TerminalOptions& options = {}) {
    const Compared& of = compared(kind);
    const auto text = render_campaign_as(of.campaign, of.comparison, format, options);
    EXPECT_TRUE(text);
    return text.value_or("");
  }
};

TEST_F(CampaignReport, HoldsEveryPartInOrder) {
  const std::string html = shown("effect");
  size_t at = 0;
  for (const char* part :
       {"class=\"strip", "id=\"difference\"", "speculation.method", "each draft is checked",
        "id=\"effects\"", "noise-band", "id=\"order\"", "dot open s2", "id=\"curves\"",
        "class=\"spread s1\"", "id=\"failures\"", "id=\"acceptance\"", "engine counters",
        "id=\"runs\"", "our client was busy for 94.0 % of the lane", "With the excluded runs",
        "id=\"definitions\"", "id=\"verify\""}) {
    const size_t found = html.find(part, at);
    ASSERT_NE(found, std::string::npos) << part;
    at = found;
  }
  EXPECT_TRUE(has(html, "<p class=\"word\">B is faster"));
  EXPECT_TRUE(has(html, "5 complete pairs"));
  EXPECT_TRUE(has(html, "with 80 % power")) << "what the design could see";
  EXPECT_FALSE(has(html, "EXPLORATORY"));
  EXPECT_FALSE(has(html, "<b>A/A</b>"));
  EXPECT_EQ(occurrences(html, "<svg"), occurrences(html, "role=\"img\" aria-label=\""));
  EXPECT_LT(html.size(), 700u << 10);
}

TEST_F(CampaignReport, SaysWhenBothArmsAreTheSame) {
  const std::string html = shown("aa");
  EXPECT_TRUE(has(html, "<b>A/A</b>"));
  EXPECT_TRUE(has(html, "qwen3-0.6b-plain against itself"));
  EXPECT_TRUE(has(html, "<p class=\"word\">Not resolved"));
  EXPECT_TRUE(has(html, "that does not show that they are equal"));
}

TEST_F(CampaignReport, SaysOnTopThatItIsExploratory) {
  const std::string html = shown("exploratory");
  const size_t banner = html.find("<b>EXPLORATORY</b>");
  ASSERT_NE(banner, std::string::npos);
  EXPECT_LT(banner, html.find("class=\"strip"));
  EXPECT_TRUE(has(html, "differ in 2 variables"));
  EXPECT_TRUE(has(html, "FEW PAIRS"));
  EXPECT_TRUE(has(html, "Effects in lanes with failures, counted both ways"));
  EXPECT_FALSE(has(html, "class=\"strip good\"")) << "three pairs are no ground for green";
  EXPECT_TRUE(has(shown("exploratory", Format::kMarkdown), "> **EXPLORATORY**"));
  EXPECT_TRUE(has(shown("exploratory", Format::kTerminal), "EXPLORATORY: "));
}

TEST_F(CampaignReport, MarkdownIsATableForAPost) {
  const std::string markdown = shown("effect", Format::kMarkdown);
  EXPECT_TRUE(has(markdown, "| Lane | Metric | A | B | B / A | 95 % interval |"));
  EXPECT_TRUE(has(markdown, "| c4 | TPOT p50 **(primary)** |"));
  EXPECT_TRUE(has(markdown, "| run 6 (B) | lane c4: our client was busy"));
  EXPECT_TRUE(has(markdown, "`anvil verify runs/20260922T160640Z-ab-3f9a2c`"));
}

TEST_F(CampaignReport, IsTheSameBytesEveryTimeAndAfterItsEnd) {
  evidence::Campaign campaign = compared("effect").campaign;
  const Json& comparison = compared("effect").comparison;
  campaign.finished = false;
  const std::string before = render_campaign(campaign, comparison).value();
  campaign.finished = true;
  EXPECT_EQ(render_campaign(campaign, comparison).value(), before)
      << "the page is written before the journal ends";
  EXPECT_EQ(shown("effect"), before);
}

TEST_F(CampaignReport, ForeignTextStaysText) {
  const std::string html = shown("hostile");
  EXPECT_EQ(occurrences(html, "<script"), 1u) << "only our own";
  EXPECT_FALSE(has(html, "<img src=x"));
  EXPECT_FALSE(has(html, "<b onclick"));
  const std::string markdown = shown("hostile", Format::kMarkdown);
  EXPECT_FALSE(has(markdown, "<img"));
  EXPECT_FALSE(has(markdown, "<script"));
}

TEST_F(CampaignReport, TerminalKeepsItsWidth) {
  for (const char* kind : {"effect", "exploratory", "hostile"})
    for (const int columns : {40, 80, 120}) {
      const std::string text = shown(kind, Format::kTerminal, {false, columns});
      EXPECT_FALSE(has(text, "\x1b"));
      for (size_t from = 0; from < text.size();) {
        const size_t to = text.find('\n', from);
        const std::string line = text.substr(from, to - from);
        EXPECT_LE(length(line), static_cast<size_t>(columns)) << line;
        from = to + 1;
      }
    }
}

TEST(CampaignView, AnyShapeIsAPage) {
  const Json shapes[] = {
      nullptr,
      7,
      Json::array({1, nullptr}),
      {{"lanes", {1, "x", nullptr, {{"metrics", {2, nullptr, Json::object()}}}}}},
      {{"lanes",
        {{{"id", nullptr},
          {"arms", 3},
          {"metrics",
           {{{"metric", "ttfo_ms.p50"},
             {"primary", true},
             {"ratio", -1.0},
             {"interval", {{"low", 0.0}, {"high", -2.0}}},
             {"noise_floor", {{"floor", nullptr}}},
             {"values",
              {{"a", {{{"index", -4}, {"value", 1e308}}, {{"index", 1}, {"value", 1.0}}}}}}}}}}}},
       {"primary", "x"},
       {"margin", -3},
       {"pairs", {{"because", 3}}},
       {"runs", {nullptr, {{"index", "one"}}}},
       {"excluded", {1}}}};
  for (const Json& frozen : shapes)
    for (const Json& comparison : shapes) {
      evidence::Campaign campaign;
      campaign.frozen = frozen;
      for (const Format format : {Format::kHtml, Format::kMarkdown, Format::kTerminal}) {
        const auto text = render_campaign_as(campaign, comparison, format);
        ASSERT_TRUE(text);
        EXPECT_FALSE(text->empty());
      }
    }
}

TEST(CampaignView, AnIntervalOutOfReachIsDrawnAtTheEdge) {
  evidence::Campaign campaign;
  const auto metric = [](double ratio, double low, double high, const char* verdict) {
    return Json{{"metric", "e2e_ms.p50"}, {"unit", "ms"},
                {"ratio", ratio},         {"interval", {{"low", low}, {"high", high}}},
                {"verdict", verdict},     {"medians", {{"a", 10.0}, {"b", 10.0 * ratio}}}};
  };
  const Json comparison{
      {"lanes",
       {{{"id", "x"},
         {"metrics",
          {metric(50, 1e-9, 1e9, "not resolved"), metric(0.9, 0.8, 1.1, "not resolved")}}}}}};
  const CampaignView view(campaign, comparison);
  const std::string svg = forest_chart(view).str();
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("x1=\"-"), std::string::npos);
  EXPECT_NE(svg.find("not resolved"), std::string::npos);
  EXPECT_EQ(view.primary, nullptr);
  EXPECT_EQ(view.verdict().word, "No primary endpoint");
}

}  // namespace
}  // namespace anvil::report
