#include "report/report.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/hash.h"
#include "evidence/derive.h"
#include "evidence/run_writer.h"
#include "evidence/testing/synthetic_run.h"
#include "evidence/verify.h"
#include "report/facts.h"
#include "report/html_parts.h"
#include "report/page_assets.h"
#include "report/testing/test_folder.h"
#include "report/text.h"
#include "report/view.h"

namespace anvil::report {
namespace {

using ReportTest = ReportFolder;

TEST_F(ReportTest, HoldsEveryPartInOrder) {
  const std::string html = page(sample("full"));
  size_t at = 0;
  for (const char* id :
       {"class=\"strip", "id=\"tested\"", "id=\"chain\"", "id=\"gates\"", "id=\"identity\"",
        "id=\"fingerprint\"", "id=\"checks\"", "id=\"lanes\"", "id=\"timeline\"", "id=\"ladder\"",
        "id=\"hardware\"", "id=\"startup\"", "id=\"stop\"", "id=\"environment\"", "id=\"failures\"",
        "id=\"log\"", "id=\"definitions\"", "id=\"names\"", "id=\"verify\""}) {
    const size_t found = html.find(id, at);
    ASSERT_NE(found, std::string::npos) << id;
    at = found;
  }
  EXPECT_TRUE(has(html, "slot unavailable")) << "every failed request is listed with its error";
  EXPECT_TRUE(has(html, "no event for 10 s (limit idle_s)"));
  EXPECT_EQ(occurrences(html, "http_error, provoked"), 1u)
      << "a check that passed wanted this failure";
  EXPECT_TRUE(has(html, "the answer is not JSON")) << "a failed check says why";
  EXPECT_TRUE(has(html, "&#39;a &#39;\\&#39;&#39;quoted&#39;\\&#39;&#39; one&#39;"))
      << "the command line is quoted for a shell";
  EXPECT_FALSE(has(html, "http-equiv=\"refresh\""));
}

TEST_F(ReportTest, RefusesPercentilesBelowTheirFloor) {
  const std::string html = page(sample("full"));
  EXPECT_TRUE(has(html, "refused (n=24 &lt; 64)"));
  EXPECT_TRUE(has(html, "refused (n=24 &lt; 662)"));
  const std::string markdown = page(base::join_path(folder_, "full"), Format::kMarkdown);
  EXPECT_TRUE(has(markdown, "refused (n=24 &lt; 64)"));
}

TEST(Figure, SaysWhyThereIsNone) {
  const Json few{{"n", 12}, {"p50", 31.24}, {"p90", nullptr}, {"median_below_floor", nullptr}};
  EXPECT_EQ(words_of(figure_of(few, "p50")), "31.2");
  EXPECT_EQ(words_of(figure_of(few, "p90")), "refused (n=12 < 64)");
  EXPECT_EQ(words_of(figure_of(few, "p95")), "refused (n=12 < 130)");
  EXPECT_EQ(words_of(figure_of(few, "p99")), "refused (n=12 < 662)");
  const Json fewer{{"n", 5}, {"p50", nullptr}, {"median_below_floor", 7.5}};
  EXPECT_EQ(words_of(figure_of(fewer, "p50"), milliseconds), "7.50 ms (n=5 < 11)");
  EXPECT_EQ(words_of(figure_of(Json{{"n", 0}, {"p50", nullptr}}, "p50")), "none");
  EXPECT_EQ(words_of(figure_of(nullptr, "p50")), "none");
}

TEST_F(ReportTest, IsTheSameBytesEveryTimeAndAfterTheSeal) {
  const std::string path = sample("full");
  const std::string before = page(path);
  EXPECT_EQ(base::sha256(page(path)), base::sha256(before));

  // What sealing changes: the manifest's status, outcome and artifact list, later journal lines,
  // compressed rows.
  const std::string manifest_path = base::join_path(path, "manifest.json");
  Json manifest = base::parse_json(*base::read_file(manifest_path), "manifest").value();
  manifest["status"] = "sealed";
  manifest["outcome"] = {{"decision", "no-promotion"}, {"failed_step", nullptr}};
  manifest["artifacts"] = Json::array({{{"name", "engine.log"}, {"bytes", 1}, {"sha256", "x"}}});
  manifest["journal_head"] = std::string(64, 'a');
  ASSERT_TRUE(base::write_file_atomic(manifest_path, base::pretty(manifest)));
  auto journal = base::AppendFile::open(base::join_path(path, "journal.jsonl"));
  ASSERT_TRUE(journal);
  ASSERT_TRUE(
      journal->append("{\"event\":\"end\",\"step\":\"report\",\"mono_ns\":9999999999999}\n"
                      "{\"event\":\"begin\",\"step\":\"seal\",\"mono_ns\":99999999999999}\n"));
  ASSERT_TRUE(base::write_file_atomic(base::join_path(path, "report.html"), before));
  EXPECT_EQ(page(path), before);
}

// A real writer, a real seal that compresses and splits, and verify with this renderer.
TEST_F(ReportTest, VerifyAcceptsThePageThatTheRunStored) {
  using evidence::testing::synthetic_row;
  const auto frozen = evidence::testing::synthetic_frozen();
  auto created = evidence::RunWriter::create(folder_, frozen);
  ASSERT_TRUE(created) << to_string(created.error());
  auto& run = **created;
  ASSERT_TRUE(run.begin_step("lanes"));
  for (int i = 0; i < 600; ++i) {
    auto row = synthetic_row({.sent = 1'000'000'000'000 + i * kSecond, .chunks = 64});
    row.lane = "c1-cold";
    row.cache_state = "cold";
    row.answer.content = base::random_hex(800);
    ASSERT_TRUE(run.append(row));
  }
  ASSERT_TRUE(run.end_step("lanes"));
  ASSERT_TRUE(run.begin_step("derive"));
  auto reader = evidence::RunReader::open(run.directory());
  ASSERT_TRUE(reader);
  const auto results = evidence::derive(*reader);
  ASSERT_TRUE(results);
  ASSERT_TRUE(run.write_document("results.json", *results));
  ASSERT_TRUE(run.end_step("derive"));
  ASSERT_TRUE(run.begin_step("decide"));
  ASSERT_TRUE(run.write_document(
      "decision.json", evidence::decide(*results, frozen.policy, evidence::failed_step(*reader),
                                        reader->manifest()["recipe"])));
  ASSERT_TRUE(run.end_step("decide"));
  ASSERT_TRUE(run.begin_step("report"));
  const std::string before = page(run.directory());
  ASSERT_TRUE(run.write_text("report.html", before));
  ASSERT_TRUE(run.end_step("report"));
  ASSERT_TRUE(run.begin_step("seal"));
  const auto sealed = run.seal({{"decision", "no-promotion"}, {"failed_step", nullptr}});
  ASSERT_TRUE(sealed) << to_string(sealed.error());

  EXPECT_FALSE(base::exists(base::join_path(run.directory(), "requests.jsonl")))
      << "the seal compressed it";
  EXPECT_EQ(page(run.directory()), before);
  const auto verified = evidence::verify(run.directory(), [](const evidence::RunReader& again) {
    return render(again, Format::kHtml);
  });
  ASSERT_TRUE(verified) << to_string(verified.error());
  for (const auto& mismatch : verified->mismatches)
    ADD_FAILURE() << mismatch.where << ": " << mismatch.recorded << " / " << mismatch.recomputed;
  EXPECT_TRUE(verified->ok);
}

TEST_F(ReportTest, IsThereForARunCutOffAfterAnyStep) {
  for (const char* step : {"freeze", "preflight", "snapshot", "launch", "identity", "fingerprint",
                           "checks", "lanes", "ladder", "stop", "derive", "decide", "report", ""}) {
    evidence::testing::SyntheticOptions options;
    options.lane_requests = 4;
    options.chunks = 4;
    options.samples = 4;
    options.stop_after = step;
    const auto path = evidence::testing::write_synthetic_run(folder_, options);
    ASSERT_TRUE(path) << step << ": " << to_string(path.error());
    const std::string html = page(*path);
    const bool decided =
        step == std::string("decide") || step == std::string("report") || step == std::string();
    EXPECT_EQ(has(html, "<p class=\"word\">Incomplete"), !decided) << step;
    EXPECT_FALSE(page(*path, Format::kMarkdown).empty());
    EXPECT_FALSE(page(*path, Format::kTerminal).empty());
  }
}

TEST_F(ReportTest, TellsOfAFailedStart) {
  const std::string html = page(sample("rejected"));
  EXPECT_TRUE(has(html, "Rejected"));
  EXPECT_TRUE(has(html, "invalid magic characters"));
  EXPECT_TRUE(has(html, "compare its SHA-256 with the recipe"));
  EXPECT_TRUE(has(html, "The engine was never asked who it is."));
  EXPECT_TRUE(has(html, "No request was sent."));
  EXPECT_TRUE(has(html, "The engine never became ready."));
  EXPECT_TRUE(has(html, "not in this run"));
  EXPECT_TRUE(has(page(base::join_path(folder_, "rejected"), Format::kMarkdown), "Rejected"));
  EXPECT_TRUE(has(page(base::join_path(folder_, "rejected"), Format::kTerminal), "Rejected: "));
}

TEST_F(ReportTest, TellsHowFarAnIncompleteRunGot) {
  const std::string html = page(sample("incomplete"));
  EXPECT_TRUE(has(html, "Incomplete"));
  EXPECT_TRUE(has(html, "inside step &quot;lanes&quot;"));
  EXPECT_TRUE(has(html, "derived from its raw records"));
  EXPECT_TRUE(has(html, "c1-cold")) << "what was measured is shown";
  EXPECT_TRUE(has(html, "No gate was evaluated"));
}

TEST_F(ReportTest, AlmostNothingIsStillAReport) {
  const std::string path = base::join_path(folder_, "bare");
  ASSERT_TRUE(base::make_directories(path));
  ASSERT_TRUE(
      base::write_file_atomic(base::join_path(path, "manifest.json"), "{\"run\":\"bare\"}\n"));
  for (const Format format : {Format::kHtml, Format::kMarkdown, Format::kTerminal})
    EXPECT_FALSE(page(path, format).empty());
  EXPECT_TRUE(has(page(path), "The record holds no step"));
}

TEST_F(ReportTest, NamesWhatItCannotRead) {
  const std::string path = sample("full");
  ASSERT_TRUE(base::write_file_atomic(base::join_path(path, "checks.json"),
                                      "{\"checks\": [1, \"two\", null, {}]"));
  ASSERT_TRUE(base::write_file_atomic(base::join_path(path, "identity.json"), "[1,2,3]"));
  std::string rows = *base::read_file(base::join_path(path, "requests.jsonl"));
  rows[rows.find("\"lane\"") + 9] ^= 1;
  ASSERT_TRUE(base::write_file_atomic(base::join_path(path, "requests.jsonl"), rows));
  const std::string html = page(path);
  EXPECT_TRUE(has(html, "checks.json cannot be read"));
  EXPECT_TRUE(has(html, "requests.jsonl cannot be read to its end"));
}

TEST_F(ReportTest, DocumentsOfTheWrongShapeDoNoHarm) {
  const std::string path = sample("full");
  const Json shapes[] = {nullptr, 7, "text", Json::array({1, "two", nullptr, Json::array()}),
                         Json{{"checks", {1, nullptr}},
                              {"fields", {"x"}},
                              {"gates", {2}},
                              {"lanes", {"x", 3}},
                              {"ladder", {{"rungs", {1}}}},
                              {"spec", {{"argv", {1, nullptr}}, {"env", 4}}}}};
  for (const char* name : {"checks.json", "identity.json", "launch.json", "results.json",
                           "decision.json", "host.json", "plan.json"}) {
    const std::string file = base::join_path(path, name);
    const std::string original = *base::read_file(file);
    for (const Json& shape : shapes) {
      ASSERT_TRUE(base::write_file_atomic(file, base::pretty(shape)));
      const auto run = evidence::RunReader::open(path);
      ASSERT_TRUE(run);
      const auto facts = gather(*run);
      ASSERT_TRUE(facts);
      EXPECT_FALSE(html_page(*facts).empty()) << name;
      EXPECT_FALSE(markdown_page(*facts).empty()) << name;
      EXPECT_FALSE(terminal_page(*facts, false, 80).empty()) << name;
    }
    ASSERT_TRUE(base::write_file_atomic(file, original));
  }
}

TEST_F(ReportTest, ForeignTextStaysText) {
  const std::string path = sample("hostile");
  const std::string html = page(path);
  EXPECT_EQ(occurrences(html, "<script"), 1u) << "only our own";
  EXPECT_EQ(occurrences(html, "</title>"), 1u);
  EXPECT_FALSE(has(html, "<img src=x"));
  EXPECT_FALSE(has(html, "\x1b"));
  EXPECT_FALSE(has(html, std::string(1, '\0')));
  EXPECT_FALSE(has(html, "\xE2\x80\xAE")) << "no character may turn the reading direction";
  EXPECT_TRUE(has(html, "1,048,576 bytes are shown; the whole text is in checks.json"));
  EXPECT_LT(html.size(), 1u << 20);
  for (const TerminalOptions options : {TerminalOptions{false, 80}, TerminalOptions{false, 40}}) {
    const std::string term = page(path, Format::kTerminal, options);
    EXPECT_FALSE(has(term, "\x1b")) << "no escape sequence unless colour is asked for";
    EXPECT_FALSE(has(term, "\xff"));
  }
  const std::string markdown = page(path, Format::kMarkdown);
  EXPECT_FALSE(has(markdown, "<script"));
  EXPECT_FALSE(has(markdown, "<b>"));
}

TEST_F(ReportTest, TerminalKeepsItsWidth) {
  for (const char* kind : {"full", "gpu", "rejected", "incomplete", "hostile"}) {
    const std::string path = sample(kind);
    for (const int columns : {40, 80, 120}) {
      const std::string text = page(path, Format::kTerminal, {false, columns});
      for (size_t from = 0; from < text.size();) {
        const size_t to = text.find('\n', from);
        const std::string line = text.substr(from, to - from);
        EXPECT_LE(length(line), static_cast<size_t>(columns)) << kind << ": " << line;
        from = to + 1;
      }
    }
    EXPECT_TRUE(has(page(path, Format::kTerminal, {true, 80}), "\x1b["));
  }
}

TEST_F(ReportTest, BrokenChainIsSaid) {
  const std::string path = sample("full");
  const std::string file = base::join_path(path, "results.json");
  Json results = base::parse_json(*base::read_file(file), "results").value();
  results["requests"]["failed"] = 0;
  ASSERT_TRUE(base::write_file_atomic(file, base::pretty(results)));
  EXPECT_TRUE(has(page(path), "decision.json names another digest"));
}

TEST_F(ReportTest, OnlyItsOwnScriptMayRun) {
  const std::string html = page(sample("full"));
  EXPECT_TRUE(has(html, "default-src &#39;none&#39;"));
  EXPECT_TRUE(has(html, "script-src &#39;sha256-" + script_hash() + "&#39;"));
  EXPECT_EQ(script_hash().size(), 44u);
  for (const char* outside : {"http://www", "https://", "src=\"", "url(", "@import"})
    EXPECT_FALSE(has(html, outside)) << outside;
}

TEST_F(ReportTest, EveryChartHasALabel) {
  const std::string html = page(sample("gpu"));
  EXPECT_GE(occurrences(html, "<svg"), 8u);
  EXPECT_EQ(occurrences(html, "<svg"), occurrences(html, "role=\"img\" aria-label=\""));
}

TEST(Verdict, NamesFailedGatesFirstAndOtherReasonsToo) {
  Facts facts;
  facts.decided = true;
  facts.decision = {
      {"decision", "no-promotion"},
      {"reasons", {"the policy requires a pinned recipe, and these fields are not: engine.image"}},
      {"gates", Json::array({{{"id", "a"}, {"verdict", "pass"}, {"on_fail", "reject"}}})}};
  Verdict verdict = verdict_of(facts);
  EXPECT_EQ(verdict.word, "No promotion");
  EXPECT_EQ(verdict.tone, Tone::kBad);
  EXPECT_EQ(verdict.sentence,
            "The policy requires a pinned recipe, and these fields are not: engine.image.");

  facts.decision["gates"] =
      Json::array({{{"id", "a"}, {"verdict", "pass"}},
                   {{"id", "b"}, {"verdict", "not-measured"}, {"on_fail", "watch"}},
                   {{"id", "c"}, {"verdict", "fail"}, {"on_fail", "watch"}},
                   {{"id", "d"}, {"verdict", "fail"}, {"on_fail", "reject"}}});
  const auto gates = gates_of(facts);
  ASSERT_EQ(gates.size(), 4u);
  EXPECT_EQ(gates[0].id, "d");
  EXPECT_EQ(gates[1].id, "c");
  EXPECT_EQ(gates[2].id, "b");
  EXPECT_EQ(gates[2].value, "not measured");
  EXPECT_EQ(verdict_of(facts).sentence,
            "2 gates failed (d and c), 1 was not measured (b); 1 of 4 passed.");
  facts.decision["decision"] = "something-new";
  EXPECT_EQ(verdict_of(facts).word, "something-new");
}

TEST(Journal, IsReadUpToTheDecision) {
  const auto line = [](const char* event, const char* step, int64_t at,
                       Json data = Json::object()) {
    return Json{{"event", event}, {"step", step}, {"mono_ns", at}, {"data", std::move(data)}};
  };
  const auto steps = steps_of(
      {line("begin", "launch", 10), line("note", "launch", 11),
       line("fail", "launch", 20, {{"detail", "no"}, {"hint", "try"}}), line("begin", "stop", 30),
       line("end", "stop", 5), line("end", "never-began", 31), Json("nonsense"),
       line("begin", "decide", 40), line("begin", "report", 50), line("end", "decide", 60)});
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].ending, Step::Ending::kFailed);
  EXPECT_EQ(steps[0].error, "no; try");
  EXPECT_EQ(steps[1].end, 30) << "time never runs backwards";
  EXPECT_EQ(steps[2].ending, Step::Ending::kOpen);
}

}  // namespace
}  // namespace anvil::report
