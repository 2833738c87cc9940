#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "evidence/testing/synthetic_run.h"
#include "evidence/testing/temp_folder.h"

namespace anvil::evidence {
namespace {

using testing::TempFolder;

// The keywords of JSON Schema that schemas/ uses.
class Schema {
 public:
  explicit Schema(Json document) : root_(std::move(document)) {}

  // Places that break the schema, with the rule.
  std::vector<std::string> check(const Json& value) const {
    std::vector<std::string> out;
    visit(root_, value, "", out);
    return out;
  }

 private:
  static bool is(const Json& value, const std::string& type) {
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    return type == "null" && value.is_null();
  }

  void visit(const Json& schema, const Json& value, const std::string& at,
             std::vector<std::string>& out) const {
    if (schema.is_boolean()) {
      if (!schema.get<bool>()) out.push_back(at + ": may not be there");
      return;
    }
    for (const auto& [rule, body] : schema.items()) {
      if (rule == "$ref") {
        visit(root_.at(Json::json_pointer(body.get<std::string>().substr(1))), value, at, out);
      } else if (rule == "type") {
        bool any = false;
        for (const Json& type : body.is_array() ? body : Json::array({body}))
          any = any || is(value, type);
        if (!any) out.push_back(at + ": is not " + body.dump());
      } else if (rule == "enum") {
        if (std::find(body.begin(), body.end(), value) == body.end())
          out.push_back(at + ": not in " + body.dump());
      } else if (rule == "const") {
        if (value != body) out.push_back(at + ": is not " + body.dump());
      } else if (rule == "pattern") {
        if (value.is_string() &&
            !std::regex_search(value.get<std::string>(), std::regex(body.get<std::string>())))
          out.push_back(at + ": does not match " + body.dump());
      } else if (rule == "required" && value.is_object()) {
        for (const Json& key : body)
          if (!value.contains(key.get<std::string>())) out.push_back(at + ": lacks " + key.dump());
      } else if (rule == "minItems" && value.is_array()) {
        if (value.size() < body.get<size_t>()) out.push_back(at + ": too short");
      }
    }
    if (value.is_object()) members(schema, value, at, out);
    if (value.is_array()) items(schema, value, at, out);
  }

  void members(const Json& schema, const Json& value, const std::string& at,
               std::vector<std::string>& out) const {
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [key, below] : value.items()) {
      if (properties.contains(key))
        visit(properties[key], below, at + "/" + key, out);
      else if (schema.contains("additionalProperties"))
        visit(schema["additionalProperties"], below, at + "/" + key, out);
    }
  }

  void items(const Json& schema, const Json& value, const std::string& at,
             std::vector<std::string>& out) const {
    const Json prefix = schema.value("prefixItems", Json::array());
    for (size_t i = 0; i < value.size(); ++i) {
      const std::string below = at + "/" + std::to_string(i);
      if (i < prefix.size())
        visit(prefix[i], value[i], below, out);
      else if (schema.contains("items"))
        visit(schema["items"], value[i], below, out);
    }
  }

  Json root_;
};

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
