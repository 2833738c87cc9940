// The figures of quality suites and preflights: counts of what passed, graded again where possible.
#include <set>

#include "base/files.h"
#include "base/strings.h"
#include "evidence/import/figures.h"
#include "evidence/json_access.h"

namespace anvil::evidence::imported {

namespace {

bool contains(const std::string& lowered, std::string_view word) {
  return lowered.find(base::lower(word)) != std::string::npos;
}

bool contains_any(const std::string& lowered, std::initializer_list<std::string_view> words) {
  for (const auto word : words)
    if (contains(lowered, word)) return true;
  return false;
}

// The eval of a suite file, by its id.
const Json* find_eval(const Campaign& campaign, const std::string& id) {
  for (const auto& document : campaign.documents) {
    if (document->kind != "suite") continue;
    for (const auto& eval : elements(member(document->json, "evals")))
      if (text(eval, "id") == id) return &eval;
  }
  return nullptr;
}

bool holds(const Json& check, const std::string& lowered) {
  const std::string one = text(check, "contains");
  if (!one.empty() && !contains(lowered, one)) return false;
  for (const auto& word : elements(member(check, "contains_all")))
    if (!word.is_string() || !contains(lowered, word.get<std::string>())) return false;
  const auto& any = elements(member(check, "contains_any"));
  bool found = any.empty();
  for (const auto& word : any)
    found = found || (word.is_string() && contains(lowered, word.get<std::string>()));
  return found;
}

// An answer of the two built-in text tasks, whose validators are part of the old program.
std::optional<bool> grade_built_in(const std::string& id, const std::string& lowered) {
  if (id == "unified_diff_timeout_edit")
    return contains(lowered, "---") && contains(lowered, "+++") && contains(lowered, "@@") &&
           contains(lowered, "-timeout = 30") && contains(lowered, "+timeout = 45");
  if (id == "parallel_timeout_triage")
    return contains_any(lowered, {"timeout", "budget", "overrun", "exceed"}) &&
           contains_any(lowered, {"faster", "reduce", "parallel"});
  return std::nullopt;
}

// The arguments of a recorded call; the old program kept the name only where it was a wrong one.
bool tool_call_matches(const Json& call, const Json& expected) {
  if (call.contains("name") && text(call, "name") != text(expected, "name")) return false;
  return member(call, "arguments") == member(expected, "required_args");
}

}  // namespace

std::optional<bool> grade_again(const Campaign& campaign, const QualityItem& item,
                                const Row& attempt) {
  const Json& document = attempt.document->json;
  const Json::json_pointer at(attempt.pointer), item_at(item.pointer);
  if (!document.contains(at) || !document.contains(item_at)) return std::nullopt;
  const Json& record = document.at(at);
  const Json& check = document.at(item_at);
  const bool stopped = attempt.finish == "stop";
  if (item.section == "tool")
    return attempt.finish == "tool_calls" && integer(record, "tool_call_count") == 1 &&
           member(record, "arguments") == member(check, "expected_arguments");
  const std::string lowered = base::lower(attempt.content);
  if (item.section == "session") {
    const std::string expected = text(record, "expected");
    return stopped && !expected.empty() && contains(lowered, expected);
  }
  if (item.section == "intelligence") {
    const auto held = grade_built_in(item.id, lowered);
    if (!held) return std::nullopt;
    return *held && stopped;
  }
  const Json* eval = find_eval(campaign, item.id);
  if (!eval) return std::nullopt;
  const Json& expected = member(*eval, "expect_tool");
  if (expected.is_object()) {
    if (attempt.finish != "tool_calls") return false;
    if (!member(record, "tool_call").is_object()) return std::nullopt;
    if (!tool_call_matches(member(record, "tool_call"), expected)) return false;
  } else if (!stopped) {
    return false;
  }
  for (const auto& one : elements(member(*eval, "checks")))
    if (!holds(one, lowered)) return false;
  return true;
}

void add_quality_figures(const Campaign& campaign, Figures& figures) {
  for (const auto& quality : campaign.quality) {
    figures.group(quality.document->file);
    for (const auto& item : quality.items) {
      std::optional<double> passed = 0;
      for (const auto& attempt : item.attempts) {
        const auto held = grade_again(campaign, item, attempt);
        if (!held) passed.reset();
        if (passed && held) *passed += *held ? 1 : 0;
      }
      figures.stored(item.id + ", attempts passed",
                     place(*quality.document, item.pointer + "/pass_count"),
                     item.pass_count ? Json(*item.pass_count) : Json(nullptr), passed,
                     passed ? "the stored answers graded again"
                            : "the file that says what is asked for is not in the directory");
    }
    const Json& suites = member(quality.document->json, "suites");
    if (suites.is_object())
      for (const auto& [name, suite] : suites.items()) {
        const Document* file = campaign.document(base::base_name(text(suite, "source")));
        figures.exact("sha256 of suite " + name,
                      place(*quality.document, "/suites/" + name + "/source_sha256"),
                      member(suite, "source_sha256"), file ? Json(file->sha256) : Json(nullptr),
                      file ? "hash of " + file->file : "the suite's file is not in the directory");
      }
  }
  for (const auto& document : campaign.documents) {
    const Json& thinking = member(document->json, "thinking");
    const std::string evidence = text(thinking, "control_evidence");
    if (evidence.empty()) continue;
    figures.group(document->file);
    const Document* file = campaign.document(base::base_name(evidence));
    figures.exact(
        "sha256 of the effort's evidence", place(*document, "/thinking/control_evidence_sha256"),
        member(thinking, "control_evidence_sha256"), file ? Json(file->sha256) : Json(nullptr),
        file ? "hash of " + file->file : "that file is not in the directory");
  }
}

namespace {

// The observations that a result of the preflight is about, by the requests' names.
std::vector<std::string> tests_of(const std::string& result) {
  if (result.starts_with("smoke")) return {"smoke"};
  if (result.find("JSON") != std::string::npos) return {"json"};
  if (result.find("tool batch") != std::string::npos) return {"tools"};
  if (result.starts_with("streaming")) return {"streaming-tools"};
  if (result.starts_with("tool-result")) return {"tool-result-initial", "tool-result-continuation"};
  if (result.starts_with("Responses")) return {"responses"};
  return {};
}

// Whether an observation holds, from its stored answer where it has one; tool calls were kept as a
// verdict only.
bool observation_holds(const Row& row) {
  const std::string lowered = base::lower(row.content);
  if (row.item == "smoke") return contains(lowered, "sum(") && row.finish == "stop";
  if (row.item == "json") {
    auto parsed = base::parse_json(row.content, "answer");
    return parsed && parsed->contains("language") && row.finish == "stop";
  }
  if (row.item == "tool-result-continuation")
    return contains(lowered, "oakland") && contains(lowered, "72f") && row.finish == "stop";
  return row.ok && (row.finish == "tool_calls" || row.finish == "stop");
}

}  // namespace

void add_preflight_figures(const Campaign& campaign, Figures& figures) {
  for (const auto& preflight : campaign.preflights) {
    figures.group(preflight.document->file);
    size_t index = 0;
    bool all = true, all_known = true;
    for (const auto& result : elements(member(preflight.document->json, "results"))) {
      const auto tests = tests_of(text(result, "name"));
      size_t seen = 0;
      bool held = true;
      for (const auto& row : preflight.rows)
        for (const auto& test : tests)
          if (row.item == test) ++seen, held = held && observation_holds(row);
      const bool known = seen > 0;
      all = all && held;
      all_known = all_known && known;
      figures.exact(text(result, "name"),
                    place(*preflight.document, "/results/" + std::to_string(index++) + "/passed"),
                    member(result, "passed"), known ? Json(held) : Json(nullptr),
                    known ? "over " + std::to_string(seen) + " observations"
                          : "no observation of this check is in the file");
    }
    figures.exact("passed", place(*preflight.document, "/passed"),
                  member(preflight.document->json, "passed"), all_known ? Json(all) : Json(nullptr),
                  all_known ? "all checks together" : "a check has no observation");
  }
}

}  // namespace anvil::evidence::imported
