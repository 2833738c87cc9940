#include <gtest/gtest.h>

#include <cmath>

#include "base/hash.h"
#include "report/charts.h"
#include "report/html_parts.h"
#include "report/labels.h"
#include "report/load_view.h"
#include "report/nines.h"
#include "report/testing/test_folder.h"
#include "report/tool_names.h"

namespace anvil::report {
namespace {

using LoadReport = ReportFolder;

TEST_F(LoadReport, ShowsHowEachLaneWasLoadedAndWhetherToBelieveIt) {
  const std::string html = page(sample("bench"));
  EXPECT_EQ(occurrences(html, "<dl class=\"validity\""), 6u) << "one strip for each lane";
  EXPECT_TRUE(has(html, "poisson 4/s"));
  EXPECT_TRUE(has(html, "<td class=\"n\" data-v=\"16.000000\">16 streams</td>"));
  EXPECT_TRUE(has(html, "10.9 us of TTFO")) << "the client's error of the same run";
  EXPECT_TRUE(has(html, "480 by the kernel, 0 by us"));
  EXPECT_TRUE(has(html, "credited by per-chunk counts"));
  EXPECT_TRUE(has(html, "TTFO p90 \xE2\x89\xA4 600 ms"));
  EXPECT_TRUE(has(html, "Goodput: requests that met every objective"));
  EXPECT_TRUE(has(html, "c16, knee")) << "the most goodput among the lanes that hold";
  EXPECT_TRUE(has(html, "mean length 2.70"));
  EXPECT_TRUE(has(html, "position 1: 80 % accepted"));
  EXPECT_TRUE(has(html, "class=\"steady-span\""));
  EXPECT_TRUE(has(html, ">under way<"));
  EXPECT_FALSE(has(html, "Not valid"));
  EXPECT_EQ(occurrences(html, "<svg"), occurrences(html, "role=\"img\" aria-label=\""));
  EXPECT_LT(html.size(), 700u << 10);
}

TEST_F(LoadReport, IsLoudWhenOurClientWasTheBottleneck) {
  const std::string path = sample("troubled");
  const std::string html = page(path);
  EXPECT_TRUE(has(html, "Our client was the bottleneck, so these numbers are not the engine"));
  EXPECT_TRUE(has(html, "our client was busy for 94.0 % of the lane"));
  EXPECT_TRUE(has(html, "7 TCP segments were retransmitted"));
  EXPECT_TRUE(has(html, "buffered path: "));
  EXPECT_TRUE(has(html, "<s>66.1 ms</s> (error 3.66 ms)")) << "refused, with both figures";
  EXPECT_TRUE(has(html, "</s><small>our error is ")) << "struck where the table shows it";
  EXPECT_TRUE(has(page(path, Format::kMarkdown), "**not valid**, our client was the bottleneck"));
  EXPECT_TRUE(has(page(path, Format::kMarkdown), "refused (our error 3.66 ms)"));
  EXPECT_TRUE(has(page(path, Format::kTerminal), "not valid, our client was the bottleneck"));
}

TEST_F(LoadReport, IsTheSameBytesEveryTime) {
  const std::string path = sample("bench");
  EXPECT_EQ(base::sha256(page(path)), base::sha256(page(path)));
}

TEST_F(LoadReport, HostileNamesAndReasonsStayText) {
  const std::string path = base::join_path(folder_, "evil");
  ASSERT_TRUE(write_sample_bench(path, {.name = "<script>x</script>", .hostile = true}));
  const std::string html = page(path);
  EXPECT_EQ(occurrences(html, "<script"), 1u) << "only our own";
  EXPECT_FALSE(has(html, "<b onclick"));
  EXPECT_TRUE(has(html, "&lt;/dd&gt;&lt;script&gt;alert(2)")) << "why the calibration is void";
}

TEST(Validity, UnknownEverywhereIsSaidAndNothingIsMadeUp) {
  const Json client{{"valid", true},           {"invalid_reasons", Json::array()},
                    {"warnings", nullptr},     {"busy_share", nullptr},
                    {"stamp_source", nullptr}, {"path", nullptr},
                    {"calibration", nullptr}};
  const Facts facts;
  const Validity validity = validity_of(facts, Json{{"id", "x"}, {"client", client}});
  EXPECT_TRUE(validity.known);
  EXPECT_TRUE(validity.valid);
  ASSERT_EQ(validity.marks.size(), 8u);
  EXPECT_EQ(validity.marks[0].value, "not calibrated");
  EXPECT_EQ(validity.marks[0].tone, Tone::kWatch);
  for (const Mark& mark : validity.marks) {
    EXPECT_NE(mark.value, "0");
    EXPECT_NE(mark.tone, Tone::kGood) << mark.label << ": nothing is known";
  }
  EXPECT_FALSE(validity_of(facts, Json{{"id", "x"}}).known) << "a run of an older version";
  EXPECT_FALSE(validity_of(facts, nullptr).known);
  EXPECT_FALSE(validity_strip(facts, Json{{"client", {{"valid", false}}}}).empty());
  EXPECT_TRUE(validity_strip(facts, Json{{"id", "x"}}).empty());
}

TEST(Validity, WordsOfLoadsAndMetrics) {
  EXPECT_EQ(load_words(Json{{"concurrency", 1}}), "1 stream");
  EXPECT_EQ(load_words(Json{{"concurrency", 8}, {"load", {{"kind", "closed"}}}}), "8 streams");
  EXPECT_EQ(load_words(Json{{"load", {{"kind", "gamma"}, {"rate_target", 2.5}}}}), "gamma 2.50/s");
  EXPECT_EQ(load_words(Json{{"load", {{"kind", "trace"}, {"rate_intended", 3.0}}}}), "trace 3/s");
  EXPECT_EQ(load_words(nullptr), "none");
  EXPECT_EQ(metric_words("ttfo_ms.p90"), "TTFO p90");
  EXPECT_EQ(metric_words("goodput.req_s"), "goodput, requests/s");
  EXPECT_EQ(metric_words("something_new"), "something_new");
}

TEST(Figure, IsRefusedForOurErrorWithBothFigures) {
  const Json dist{{"n", 700},
                  {"p50", 3.0},
                  {"p99", nullptr},
                  {"refused", {{"p99", {{"value", 9.0}, {"client_error_ms", 1.4}}}}}};
  EXPECT_EQ(words_of(figure_of(dist, "p50")), "3.00");
  const Figure figure = figure_of(dist, "p99");
  EXPECT_EQ(figure.kind, Figure::Kind::kOurError);
  EXPECT_EQ(figure.value, 9);
  EXPECT_EQ(words_of(figure, milliseconds), "refused (our error 1.40 ms)");
}

TEST(Nines, PutEachDecadeOfTheTailAtTheSameDistance) {
  EXPECT_NEAR(Nines::axis(0.99) - Nines::axis(0.9), 1, 1e-12);
  EXPECT_NEAR(Nines::axis(0.999) - Nines::axis(0.99), 1, 1e-9);
  const auto points =
      Nines::points(Json::array({{0.5, 10.0}, "no pair", {0.9, 20.0}, {1.0, 40.0}, {1, 2, 3}}));
  ASSERT_EQ(points.size(), 3u);
  EXPECT_NEAR(points[2].first, Nines::axis(0.95), 1e-12) << "the largest is not at infinity";
  EXPECT_TRUE(Nines::points(nullptr).empty());
  EXPECT_EQ(Nines::certified(10), 0);
  EXPECT_NEAR(Nines::certified(64), 1, 1e-12);
  EXPECT_NEAR(Nines::certified(661), Nines::axis(0.95), 1e-12);
  EXPECT_NEAR(Nines::certified(662), 2, 1e-12);
}

TEST(Labels, NeverCoverEachOtherOrTheEdge) {
  svg::Canvas canvas(200, 100, "panel", "test");
  Labels labels({0, 200}, {0, 100});
  labels.occupy(100, 50, 4);
  for (int i = 0; i < 5; ++i) labels.put(canvas, 100, 50, "lane-" + std::to_string(i), "band");
  labels.put(canvas, 199, 1, "too long for the corner that it is in", "band");
  const std::string svg = canvas.finish().str();
  EXPECT_NE(svg.find("lane-0"), std::string::npos);
  EXPECT_NE(svg.find("lane-3"), std::string::npos);
  EXPECT_EQ(svg.find("lane-4"), std::string::npos) << "no free place is left";
  EXPECT_EQ(svg.find("too long"), std::string::npos);
}

TEST(LaneCharts, DrawNothingOfNothing) {
  for (const Json& lane :
       {Json(nullptr), Json(7), Json{{"id", "x"}},
        Json{{"curves", {{"ttfo_ms", nullptr}, {"e2e_ms", 3}}},
             {"tokens_per_chunk", {{"unknown", 12}}},
             {"counters", {{"acceptance_by_position", nullptr}}}},
        Json{{"tokens_per_chunk", Json::array({1})}, {"counters", nullptr}, {"curves", "x"}}}) {
    EXPECT_TRUE(nines_chart(lane).empty());
    EXPECT_TRUE(tokens_per_chunk_chart(lane).empty());
    EXPECT_TRUE(acceptance_chart(lane).empty());
  }
  Facts facts;
  EXPECT_TRUE(throughput_charts(facts).empty());
  facts.results = {{"lanes",
                    {{{"id", "a"},
                      {"steady", {{"output_tok_s", 100.0}}},
                      {"ttfo_ms", {{"n", 20}, {"p50", 50.0}}}}}}};
  EXPECT_TRUE(throughput_charts(facts).empty()) << "one lane is no curve";
  EXPECT_TRUE(goodput_table(facts.results["lanes"]).empty());
}

TEST(LaneCharts, ManyTokensPerEventShareTheLastBar) {
  Json counts = Json::object();
  for (int i = 1; i <= 30; ++i) counts[std::to_string(i)] = 10;
  counts["unknown"] = 100;
  const std::string svg = tokens_per_chunk_chart(Json{{"tokens_per_chunk", counts}}).str();
  EXPECT_NE(svg.find("\xE2\x89\xA5"
                     "11"),
            std::string::npos);
  EXPECT_NE(svg.find("200 events with"), std::string::npos);
  EXPECT_NE(svg.find("100 events without a count"), std::string::npos);
}

TEST(ToolNames, EveryRowSaysWhatDiffers) {
  for (const ToolNames& each : tool_names()) {
    EXPECT_FALSE(each.ours.empty());
    EXPECT_FALSE(each.difference.empty()) << each.ours;
  }
  EXPECT_NE(names_section().str().find("<code><span>itl</span></code>"), std::string::npos);
}

}  // namespace
}  // namespace anvil::report
