#include "evidence/import/import.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "evidence/row_metrics.h"
#include "evidence/testing/temp_folder.h"

namespace anvil::evidence::imported {
namespace {

using testing::TempFolder;

// A capacity run of three requests with identical prompts; the first one computed its prompt.
Json capacity(const std::string& model, std::vector<int64_t> tokens, double speed,
              bool first_is_cold) {
  Json rows = Json::array();
  double wall = 0, sum = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const double ttfo = first_is_cold && i == 0 ? 900 : 300;
    const double generation = static_cast<double>(tokens[i] - 1) / speed * 1000;
    rows.push_back({{"request_index", i},
                    {"prompt_tokens", 1000},
                    {"output_tokens", tokens[i]},
                    {"content_chunks", tokens[i]},
                    {"reasoning_chunks", 0},
                    {"time_to_first_output_ms", ttfo},
                    {"ttft_ms", ttfo},
                    {"e2e_ms", ttfo + generation},
                    {"generation_ms", generation},
                    {"decode_tok_s", speed}});
    wall += ttfo + generation;
    sum += static_cast<double>(tokens[i]);
  }
  const double hits = first_is_cold ? 2 : 3;
  return {{"schema", "anvil-serving.benchmark/v1"},
          {"model", model},
          {"engine", "vllm"},
          {"started_at", "2026-01-01T00:00:00Z"},
          {"requests", tokens.size()},
          {"completed", tokens.size()},
          {"failed", 0},
          {"failures", Json::array()},
          {"concurrency", 1},
          {"context_tokens", 1500},
          {"max_context_tokens", 8192},
          {"max_tokens", 256},
          {"wall_clock_ms", wall},
          {"metrics",
           {{"throughput_tok_s", sum / wall * 1000},
            {"decode_tok_s_p50", speed},
            {"output_tokens", static_cast<int64_t>(sum)},
            {"prefix_cache_hit_avg", 0.9 * hits / 3}}},
          {"request_timings", rows}};
}

Json comparison(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return {{"schema_version", "paired-capacity-comparison/v1"},
          {"protocol", {{"max_model_len", 131072}, {"max_tokens", 256}, {"context_tokens", 1500}}},
          {"dspark", {{"served_model", "fast"}, {"artifacts", a}, {"startup_seconds", 12.5}}},
          {"control", {{"served_model", "plain"}, {"artifacts", b}}},
          {"metrics",
           {{"decode_tok_s_p50",
             {{"dspark_values", {100.0, 120.0, 110.0}},
              {"control_values", {50.0, 50.0, 50.0}},
              {"dspark_median", 110.0},
              {"control_median", 50.0},
              {"dspark_delta_percent", 120.0}}}}}};
}

// Two arms of three runs and their comparison.
std::map<std::string, Json> small_campaign() {
  Json limited = capacity("plain", {40, 50, 60}, 50, true);
  limited["max_context_tokens"] = 131072;
  return {{"a1.json", capacity("fast", {30, 40, 50}, 100, true)},
          {"a2.json", capacity("fast", {30, 41, 50}, 120, false)},
          {"a3.json", capacity("fast", {30, 42, 50}, 110, false)},
          {"b1.json", limited},
          {"b2.json", capacity("plain", {40, 51, 60}, 50, false)},
          {"b3.json", capacity("plain", {40, 52, 60}, 50, false)},
          {"compare.json",
           comparison({"a1.json", "a2.json", "a3.json"}, {"b1.json", "b2.json", "b3.json"})}};
}

Reanalysis read(const TempFolder& folder) {
  auto out = reanalyse(folder.path());
  EXPECT_TRUE(out) << base::to_string(out.error());
  return out ? std::move(*out) : Reanalysis{};
}

Reanalysis read(const std::map<std::string, Json>& files) {
  TempFolder folder;
  for (const auto& [name, json] : files)
    EXPECT_TRUE(base::write_file_atomic(folder / name, base::pretty(json)));
  return read(folder);
}

const Figure* find(const Reanalysis& all, std::string_view where) {
  for (const auto& figure : all.figures)
    if (figure.where == where) return &figure;
  return nullptr;
}

const Finding* finding(const Reanalysis& all, std::string_view id) {
  for (const auto& one : all.findings)
    if (one.id == id) return &one;
  return nullptr;
}

// "file#pointer what", of every problem.
std::vector<std::string> problems(const Reanalysis& all) {
  std::vector<std::string> out;
  for (const auto& document : all.campaign.documents)
    for (const auto& problem : document->problems)
      out.push_back(place(*document, problem.pointer) + " " + problem.what);
  return out;
}

TEST(Import, ReproducesWhatTheRowsGive) {
  const auto all = read(small_campaign());
  EXPECT_TRUE(problems(all).empty()) << problems(all).front();
  EXPECT_EQ(all.campaign.rows().size(), 18u);
  for (const char* where :
       {"a1.json#/metrics/throughput_tok_s", "a1.json#/request_timings/2/generation_ms",
        "compare.json#/metrics/decode_tok_s_p50/dspark_values/1",
        "compare.json#/metrics/decode_tok_s_p50/dspark_median",
        "compare.json#/metrics/decode_tok_s_p50/dspark_delta_percent"}) {
    const Figure* figure = find(all, where);
    ASSERT_TRUE(figure) << where;
    EXPECT_EQ(figure->verdict, Verdict::kReproduced) << where << to_json(*figure);
  }
  const Figure* startup = find(all, "compare.json#/dspark/startup_seconds");
  ASSERT_TRUE(startup);
  EXPECT_EQ(startup->verdict, Verdict::kNotDerivable);
  EXPECT_TRUE(startup->derived.is_null());
}

TEST(Import, NamesAFigureThatTheRowsContradict) {
  auto files = small_campaign();
  files["a1.json"]["metrics"]["output_tokens"] = 121;
  files["compare.json"]["metrics"]["decode_tok_s_p50"]["dspark_median"] = 110.001;
  const auto all = read(files);
  const Figure* tokens = find(all, "a1.json#/metrics/output_tokens");
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->verdict, Verdict::kDiffers);
  EXPECT_EQ(tokens->published, 121);
  EXPECT_EQ(tokens->derived, 120);
  EXPECT_EQ(find(all, "compare.json#/metrics/decode_tok_s_p50/dspark_median")->verdict,
            Verdict::kDiffers);
  // 1,000 real tokens where 1,500 were asked for.
  EXPECT_EQ(find(all, "compare.json#/protocol/context_tokens")->verdict, Verdict::kDiffers);
}

TEST(Import, FindsWhatTheNumbersHide) {
  const auto all = read(small_campaign());
  const Finding* cached = finding(all, "cached-prefill");
  ASSERT_TRUE(cached);
  EXPECT_EQ(cached->values["rows"], 18);
  EXPECT_EQ(cached->values["cached_rows"], 16);
  EXPECT_EQ(cached->values["cached_tokens"], 900);
  const Finding* limits = finding(all, "context-limits");
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->values["limits"], Json::parse("[8192, 131072]"));
  const Finding* intervals = finding(all, "no-intervals");
  ASSERT_TRUE(intervals);
  EXPECT_EQ(intervals->values["signed_rank_least_p"], 0.25);
  EXPECT_EQ(intervals->values["pairs_needed"], 6);
  EXPECT_FALSE(finding(all, "effort-fingerprint"));
  EXPECT_FALSE(finding(all, "excluded-run"));
}

TEST(Import, SaysWhichFileIsMissingInsteadOfGuessing) {
  auto files = small_campaign();
  files["renamed.json"] = files["a2.json"];
  files.erase("a2.json");
  const auto all = read(files);
  EXPECT_TRUE(problems(all).empty());
  const Figure* value = find(all, "compare.json#/metrics/decode_tok_s_p50/dspark_values/1");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->verdict, Verdict::kNotDerivable);
  EXPECT_NE(value->because.find("not in the directory"), std::string::npos);
  EXPECT_EQ(find(all, "compare.json#/metrics/decode_tok_s_p50/dspark_median")->verdict,
            Verdict::kNotDerivable);
  EXPECT_FALSE(finding(all, "no-intervals"));
}

TEST(Import, NamesFileAndPointerOfWhatIsOdd) {
  auto files = small_campaign();
  files["a1.json"].erase("wall_clock_ms");
  files["a2.json"]["request_timings"][1]["e2e_ms"] = "fast";
  files["a3.json"]["request_timings"][0]["output_tokens"] = -3;
  files["b1.json"]["completed"] = 2;
  files["b2.json"]["request_timings"] = 7;
  files["b3.json"]["schema"] = "anvil-serving.benchmark/v9";
  const auto all = read(files);
  const auto said = problems(all);
  const auto names = [&](const std::string& start) {
    return std::any_of(said.begin(), said.end(),
                       [&](const std::string& one) { return one.starts_with(start); });
  };
  EXPECT_TRUE(names("a1.json#/wall_clock_ms is missing"));
  EXPECT_TRUE(names("a2.json#/request_timings/1/e2e_ms has to be a number"));
  EXPECT_TRUE(names("a3.json#/request_timings/0/output_tokens has to be a whole number"));
  EXPECT_TRUE(names("b1.json#/completed counts 2 requests where 3 are recorded"));
  EXPECT_TRUE(names("b2.json#/request_timings has to be an array"));
  EXPECT_TRUE(names("b3.json#/schema is none of"));
  EXPECT_EQ(find(all, "a1.json#/metrics/throughput_tok_s")->verdict, Verdict::kNotDerivable);
  EXPECT_FALSE(to_json(all)["ok"].get<bool>());
}

TEST(Import, KeepsGoingBesideAFileThatIsCutOff) {
  TempFolder folder;
  const std::string whole = base::pretty(capacity("m", {10, 20, 30}, 50, true));
  ASSERT_TRUE(base::write_file_atomic(folder / "whole.json", whole));
  ASSERT_TRUE(base::write_file_atomic(folder / "cut.json", whole.substr(0, whole.size() / 2)));
  ASSERT_TRUE(base::write_file_atomic(folder / "empty.json", ""));
  ASSERT_TRUE(base::write_file_atomic(folder / "array.json", "[1, 2]"));
  ASSERT_TRUE(base::write_file_atomic(folder / "notes.txt", "not evidence"));
  const auto all = read(folder);
  ASSERT_EQ(all.campaign.documents.size(), 4u);
  EXPECT_EQ(all.campaign.document("cut.json")->kind, "unreadable");
  EXPECT_EQ(all.campaign.document("empty.json")->kind, "unreadable");
  EXPECT_EQ(all.campaign.document("array.json")->kind, "unknown");
  EXPECT_TRUE(all.campaign.document("whole.json")->problems.empty());
  EXPECT_EQ(all.campaign.rows().size(), 3u);
}

TEST(Import, RefusesAFolderWithoutEvidence) {
  TempFolder folder;
  EXPECT_FALSE(reanalyse(folder.path()));
  EXPECT_FALSE(reanalyse(folder / "absent"));
}

TEST(Import, ConvertsRowsIntoOurForm) {
  auto files = small_campaign();
  Json& run = files["b2.json"];
  run["request_timings"].erase(1);
  run["completed"] = 2;
  run["failed"] = 1;
  run["failures"] = {{{"request_index", 1}, {"error_message", "nothing to see"}}};
  const auto all = read(std::map<std::string, Json>{{"b2.json", run}});
  std::vector<RequestRow> rows;
  const std::string lines = rows_as_lines(all);
  for (size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1) {
    auto row = parse_row(lines.substr(at, lines.find('\n', at) - at));
    ASSERT_TRUE(row) << base::to_string(row.error());
    rows.push_back(std::move(*row));
  }
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(measure(rows[0]).ttfo, 300 * kMillisecond);
  EXPECT_EQ(measure(rows[0]).completion_tokens, 40);
  EXPECT_FALSE(measure(rows[0]).cached_tokens) << "an inferred count is no observed one";
  EXPECT_EQ(rows[2].outcome, Outcome::kTruncated);
  EXPECT_EQ(rows[2].error_detail, "nothing to see");
  EXPECT_FALSE(measure(rows[2]).ttfo);
  EXPECT_EQ(all.campaign.rows()[2]->missing.size(), 6u);
}

// Every value of a document in turn is removed, or replaced by one of another kind: something may
// become a problem or not derivable, and nothing may break.
void damage_everywhere(const std::map<std::string, Json>& files, const std::string& name,
                       size_t step) {
  TempFolder folder;
  for (const auto& [file, json] : files)
    ASSERT_TRUE(base::write_file_atomic(folder / file, base::pretty(json)));
  const Json flat = files.at(name).flatten();
  std::vector<std::string> pointers;
  for (const auto& [pointer, value] : flat.items()) {
    pointers.push_back(pointer);
    pointers.push_back(pointer.substr(0, pointer.rfind('/')));
  }
  const Json replacements[] = {nullptr,        -1,  1e300, "x", Json::array({Json::object()}),
                               Json{{"a", 1}}, true};
  size_t turn = 0;
  for (size_t i = 0; i < pointers.size(); i += step) {
    Json damaged = files.at(name);
    damaged[Json::json_pointer(pointers[i])] = replacements[turn++ % std::size(replacements)];
    ASSERT_TRUE(base::write_file_atomic(folder / name, base::pretty(damaged)));
    auto all = reanalyse(folder.path());
    ASSERT_TRUE(all);
    EXPECT_FALSE(markdown(*all, "x").empty());
    EXPECT_FALSE(rows_as_lines(*all).empty() && all->campaign.rows().size() > 0);
  }
}

TEST(Import, SurvivesDamageAnywhere) {
  const auto files = small_campaign();
  damage_everywhere(files, "a1.json", 1);
  damage_everywhere(files, "compare.json", 1);
}

TEST(Import, ReadsPrintedDigits) {
  EXPECT_EQ(printed_number("1,573.9"), 1573.9);
  EXPECT_EQ(printed_number("+5.867"), 5.867);
  EXPECT_EQ(printed_number("-59.571"), -59.571);
  EXPECT_FALSE(printed_number("fast"));
  EXPECT_DOUBLE_EQ(half_unit("1,573.9"), 0.05);
  EXPECT_DOUBLE_EQ(half_unit("32,768"), 0.5);
  EXPECT_EQ(grouped(138459), "138,459");
  EXPECT_EQ(grouped(-1234), "-1,234");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(shown(Json(0.5509626274)), "0.550963");
  EXPECT_EQ(shown(Json(42.0)), "42");
}

TEST(Import, APrintedFigureIsHeldToItsDigits) {
  Figures figures;
  figures.printed("near", "t", "2.75", 2.754813, "x");
  figures.printed("far", "t", "2.75", 2.7551, "x", "why");
  figures.printed("none", "t", "2.75", std::nullopt, "x");
  const auto all = figures.take();
  EXPECT_EQ(all[0].verdict, Verdict::kReproduced);
  EXPECT_EQ(all[1].verdict, Verdict::kDiffers);
  EXPECT_EQ(all[1].because, "x; why");
  EXPECT_EQ(all[2].verdict, Verdict::kNotDerivable);
}

}  // namespace
}  // namespace anvil::evidence::imported
