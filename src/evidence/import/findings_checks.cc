// Findings about functional checks: the reasoning effort that arrived, and what a full score
// proves.
#include "base/strings.h"
#include "evidence/import/findings.h"
#include "evidence/json_access.h"
#include "stats/binomial.h"

namespace anvil::evidence::imported {

namespace {

// Prompt tokens that each effort adds to a minimal prompt when the chat template applies it, as the
// recipes of this checkpoint declare (recipes/deepseek-v4-flash-r16-*.toml, [fingerprint]).
constexpr std::pair<std::string_view, int64_t> kDeclared[] = {
    {"low", 0}, {"high", 79}, {"max", 92}};
// The template's text may begin or end one token differently beside another prompt.
constexpr int64_t kSlack = 1;

std::optional<int64_t> declared_delta(std::string_view effort) {
  for (const auto& [name, delta] : kDeclared)
    if (name == effort) return delta;
  return std::nullopt;
}

std::optional<int64_t> prompt_of(const Preflight& preflight, std::string_view test) {
  for (const auto& row : preflight.rows)
    if (row.item == test) return row.prompt;
  return std::nullopt;
}

constexpr std::string_view kFingerprintTests[] = {"smoke", "json", "tools", "tool-result-initial",
                                                  "tool-result-continuation"};

// How an effort's prompts differ from the lowest one's; nothing without a common test.
std::optional<int64_t> delta_of(const Preflight& base, const Preflight& other) {
  const auto a = prompt_of(base, "smoke"), b = prompt_of(other, "smoke");
  if (!a || !b) return std::nullopt;
  return *b - *a;
}

std::string verdict_of(const std::string& effort, int64_t delta) {
  const auto declared = declared_delta(effort);
  if (!declared) return "no declared prompt for this effort";
  if (std::abs(delta - *declared) <= kSlack) return "applied";
  if (delta == 0) return "not applied (the prompt is that of the lowest effort)";
  for (const auto& [name, other] : kDeclared)
    if (name != effort && std::abs(delta - other) <= kSlack)
      return "has another effort's prompt (that of " + std::string(name) + ")";
  return "differs from every declared prompt";
}

void effort_fingerprint(const Campaign& campaign, std::vector<Finding>& findings) {
  std::vector<std::string> models;
  for (const auto& preflight : campaign.preflights)
    if (std::find(models.begin(), models.end(), preflight.model) == models.end())
      models.push_back(preflight.model);
  for (const auto& model : models) {
    const Preflight* base = nullptr;
    std::vector<const Preflight*> all;
    for (const auto& preflight : campaign.preflights)
      if (preflight.model == model) {
        all.push_back(&preflight);
        if (preflight.effort == "low") base = &preflight;
      }
    if (!base || all.size() < 2) continue;
    // In the order of the declaration, so that the lowest effort comes first.
    std::stable_sort(all.begin(), all.end(), [](const Preflight* a, const Preflight* b) {
      return declared_delta(a->effort).value_or(INT64_MAX) <
             declared_delta(b->effort).value_or(INT64_MAX);
    });
    Finding out;
    out.id = "effort-fingerprint";
    out.table = {{"effort", "smoke", "json", "tools", "tool call", "continuation", "added to smoke",
                  "declared", "verdict"}};
    std::vector<std::string> wrong, counts;
    for (const Preflight* one : all) {
      const auto delta = delta_of(*base, *one);
      if (!delta) continue;
      std::vector<std::string> line = {one->effort};
      for (const auto test : kFingerprintTests) {
        const auto tokens = prompt_of(*one, test);
        line.push_back(tokens ? grouped(*tokens) : "-");
      }
      const auto declared = declared_delta(one->effort);
      const std::string verdict = verdict_of(one->effort, *delta);
      line.push_back("+" + std::to_string(*delta));
      line.push_back(declared ? "+" + std::to_string(*declared) : "-");
      line.push_back(verdict);
      out.table.push_back(std::move(line));
      counts.push_back(std::to_string(*prompt_of(*one, "smoke")));
      if (verdict != "applied") wrong.push_back("`" + one->effort + "` " + verdict);
      out.values["smoke_prompt_tokens"][one->effort] = *prompt_of(*one, "smoke");
      out.values["verdicts"][one->effort] = verdict;
      out.evidence.push_back(place(*one->document, "/observations"));
    }
    if (wrong.empty()) continue;
    out.title = "Reasoning efforts did not reach the prompt as asked (" + base::join(counts, "/") +
                " prompt tokens): " + base::join(wrong, "; ");
    out.text.push_back(
        "The same minimal prompts were sent at each effort. An effort that the chat template "
        "applies adds its own text, and the engine's prompt count shows it. The functional checks "
        "passed all the same: they do not look at the prompt.");
    findings.push_back(std::move(out));
  }
}

// Whether every text that an eval's checks look for stands in its prompt.
bool prompt_holds_answer(const Json& eval) {
  const std::string prompt = base::lower(text(eval, "prompt"));
  size_t words = 0;
  const auto in_prompt = [&](const Json& word) {
    ++words;
    return word.is_string() &&
           prompt.find(base::lower(word.get<std::string>())) != std::string::npos;
  };
  bool all = true;
  for (const auto& check : elements(member(eval, "checks"))) {
    if (check.contains("contains")) all = all && in_prompt(check["contains"]);
    for (const auto& word : elements(member(check, "contains_all"))) all = all && in_prompt(word);
    const auto& any = elements(member(check, "contains_any"));
    bool one = any.empty();
    for (const auto& word : any) one = in_prompt(word) || one;
    all = all && one;
  }
  for (const auto& [key, value] : member(member(eval, "expect_tool"), "required_args").items())
    all = all && in_prompt(value);
  return all && words > 0;
}

void score_strength(const Campaign& campaign, std::vector<Finding>& findings) {
  for (const auto& quality : campaign.quality) {
    std::vector<stats::Item> items;
    size_t attempts = 0, passes = 0;
    int64_t least = INT64_MAX, most = 0;
    Finding out;
    out.id = "score-strength";
    out.table = {{"item", "attempts", "passed", "output tokens", "cached prompt tokens"}};
    for (const auto& item : quality.items) {
      stats::Item one;
      int64_t low = INT64_MAX, high = 0, cached = 0;
      for (const auto& row : item.attempts) {
        ++one.attempts;
        one.passes += grade_again(campaign, item, row).value_or(row.ok) ? 1 : 0;
        low = std::min(low, row.completion.value_or(low));
        high = std::max(high, row.completion.value_or(high));
        cached = std::max(cached, row.cached.value_or(0));
      }
      if (one.attempts == 0) continue;
      items.push_back(one);
      attempts += one.attempts;
      passes += one.passes;
      least = std::min(least, low);
      most = std::max(most, high);
      out.table.push_back({item.id, std::to_string(one.attempts), std::to_string(one.passes),
                           grouped(low) + " to " + grouped(high), grouped(cached)});
      out.evidence.push_back(place(*quality.document, item.pointer));
    }
    if (items.empty()) continue;
    const auto over_attempts = stats::clopper_pearson(passes, attempts);
    const auto over_items = stats::clustered_pass_rate(items, {});
    out.title = std::to_string(passes) + " of " + std::to_string(attempts) + " passes are " +
                std::to_string(items.size()) + " tasks with " +
                std::to_string(attempts / items.size()) + " attempts each";
    std::string text = "Answers took " + grouped(least) + " to " + grouped(most) + " tokens.";
    if (over_attempts && over_items && over_items->interval) {
      text += " Were the attempts independent, a true pass rate down to " +
              fixed(over_attempts->low * 100, 1) +
              " % would still fit (95 %); attempts at one task are not, and over the tasks it is " +
              fixed(over_items->interval->low * 100, 1) + " %.";
      out.values["lower_bound_attempts"] = over_attempts->low;
      out.values["lower_bound_items"] = over_items->interval->low;
    }
    out.text.push_back(std::move(text));
    size_t evals = 0, copied = 0;
    for (const auto& document : campaign.documents)
      if (document->kind == "suite")
        for (const auto& eval : elements(member(document->json, "evals"))) {
          ++evals;
          copied += prompt_holds_answer(eval) ? 1 : 0;
        }
    if (evals > 0)
      out.text.push_back(
          "Checks look for words in the answer, not for a patch that applies or a program that "
          "runs. In " +
          std::to_string(copied) + " of the suite's " + std::to_string(evals) +
          " tasks every word that is looked for already stands in the prompt.");
    out.values["attempts"] = attempts;
    out.values["passes"] = passes;
    out.values["items"] = items.size();
    out.values["completion_tokens"] = {least, most};
    out.values["answers_in_prompt"] = copied;
    findings.push_back(std::move(out));
  }
}

}  // namespace

void add_check_findings(const Campaign& campaign, std::vector<Finding>& findings) {
  effort_fingerprint(campaign, findings);
  score_strength(campaign, findings);
}

}  // namespace anvil::evidence::imported
