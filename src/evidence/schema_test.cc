#include <gtest/gtest.h>

#include "evidence/testing/schema.h"
#include "evidence/testing/synthetic_run.h"
#include "evidence/testing/temp_folder.h"

namespace anvil::evidence {
namespace {

using testing::Schema;
using testing::TempFolder;

Schema load(const std::string& name) {
  const auto text =
      base::read_file(std::string(ANVIL_SOURCE_DIR) + "/schemas/" + name + ".schema.json");
  EXPECT_TRUE(text) << name;
  auto document = base::parse_json(text.value_or("{}"), name);
  EXPECT_TRUE(document) << document.error().detail;
  return Schema(document.value_or(Json::object()));
}

void expect_valid(const Schema& schema, const Json& value, const std::string& what) {
  for (const std::string& problem : schema.check(value)) ADD_FAILURE() << what << problem;
}

void check_run(const std::string& directory) {
  const auto run = RunReader::open(directory);
  ASSERT_TRUE(run);
  const std::pair<const char*, const char*> documents[] = {
      {"manifest.json", "manifest"}, {"checks.json", "checks"},   {"identity.json", "identity"},
      {"launch.json", "launch"},     {"results.json", "results"}, {"decision.json", "decision"}};
  for (const auto& [file, schema] : documents)
    if (run->has(file)) expect_valid(load(schema), *run->document(file), file);
  const std::pair<const char*, const char*> lines[] = {{"journal.jsonl", "journal-line"},
                                                       {"requests.jsonl", "request-row"},
                                                       {"samples.jsonl", "sample"}};
  for (const auto& [file, name] : lines) {
    const Schema schema = load(name);
    if (!run->has(file)) continue;
    EXPECT_TRUE(
        run->for_each_line(file, [&](std::string_view line, int64_t position) -> Result<void> {
          expect_valid(schema, *base::parse_json(line, file), file + std::to_string(position));
          return {};
        }));
  }
}

TEST(Schemas, ACompleteRunFitsThem) {
  TempFolder folder;
  const auto directory =
      testing::write_synthetic_run(folder.path(), {.lane_requests = 6, .chunks = 4});
  ASSERT_TRUE(directory);
  check_run(*directory);
}

TEST(Schemas, AFailedAndAnUnfinishedRunFitThem) {
  TempFolder folder;
  const auto failed = testing::write_synthetic_run(folder.path(), {.fail_step = "launch"});
  ASSERT_TRUE(failed);
  check_run(*failed);
  const auto cut =
      testing::write_synthetic_run(folder.path(), {.lane_requests = 2, .stop_after = "lanes"});
  ASSERT_TRUE(cut);
  check_run(*cut);
}

TEST(Schemas, ARowWithEveryFieldFits) {
  RequestRow row = testing::synthetic_row({.chunks = 2, .count_chunks = true});
  row.item = "x";
  row.answer.timings = wire::EngineTimings{1, 2, 3, 4, 5, 6.5, 7.5};
  row.answer.tool_calls = {{"id", "name", "{}"}};
  row.answer.error = wire::ReportedError{"m", "t", "c"};
  row.answer.usage.reasoning = 1;
  row.error_kind = row.error_detail = row.effort = row.request_body = "x";
  row.expect = Json{{"code", "x"}};
  expect_valid(load("request-row"), *base::parse_json(to_line(row), "row"), "row");
}

TEST(Schemas, TheyRefuseWhatIsWrong) {
  const Schema decision = load("decision");
  EXPECT_FALSE(decision.check(Json::object()).empty());
  EXPECT_FALSE(decision.check(Json{{"decision", "maybe"}}).empty());
  const Schema line = load("journal-line");
  const Json good{{"seq", 0},
                  {"event", "note"},
                  {"step", ""},
                  {"mono_ns", 1},
                  {"wall_ns", 1},
                  {"data", nullptr},
                  {"prev", std::string(64, '0')}};
  EXPECT_TRUE(line.check(good).empty());
  Json bad = good;
  bad["prev"] = "00";
  EXPECT_FALSE(line.check(bad).empty());
  bad = good;
  bad["more"] = 1;
  EXPECT_FALSE(line.check(bad).empty());
}

}  // namespace
}  // namespace anvil::evidence
