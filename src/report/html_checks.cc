#include <algorithm>

#include "base/json.h"
#include "report/html_parts.h"
#include "report/json_read.h"
#include "report/text.h"

namespace anvil::report {

namespace {

constexpr size_t kTextLimit = 16 << 10;    // of one request or answer
constexpr size_t kTotalLimit = 384 << 10;  // of all of them; what comes later is cut shorter
constexpr size_t kShortLimit = 600;

// Counts down what the page may still spend on foreign text.
class Budget {
 public:
  size_t limit_for(std::string_view text) {
    const size_t limit = spent_ >= kTotalLimit ? kShortLimit : kTextLimit;
    spent_ += std::min(text.size(), limit);
    return limit;
  }

 private:
  size_t spent_ = 0;
};

void block(Html& out, Markup title, std::string_view text, Budget& budget) {
  if (text.empty()) return;
  out << "<h4>" << title << "</h4>" << text_block(text, budget.limit_for(text), "checks.json");
}

std::string tool_calls_text(const Json& calls) {
  std::string out;
  for (const Json& call : calls) {
    const Json& function = at(call, {"function"});
    const Json& from = function.is_object() ? function : call;
    out += text_at(from, {"name"}) + "(" +
           (at(from, {"arguments"}).is_null() ? "" : plain(at(from, {"arguments"}))) + ")\n";
  }
  return out;
}

void answer(Html& out, const Json& answer, Budget& budget) {
  if (!answer.is_object()) {
    out << "<h4>Answer</h4>" << empty_state("No answer came.");
    return;
  }
  block(out, "Reasoning", text_at(answer, {"reasoning"}), budget);
  const std::string content = text_at(answer, {"content"});
  const std::string calls = tool_calls_text(list_at(answer, {"tool_calls"}));
  block(out, "Answer", content, budget);
  block(out, "Tool calls", calls, budget);
  if (content.empty() && calls.empty())
    out << "<h4>Answer</h4>" << empty_state("The answer was empty.");
  if (const std::string finish = text_at(answer, {"finish"}); !finish.empty()) {
    out << "<p class=\"note\">Finished with <code>";
    out.text(finish) << "</code></p>";
  }
}

int rank(const Json& check) {
  const std::string verdict = text_at(check, {"verdict"});
  return verdict == "fail" ? 0 : verdict == "pass" ? 2 : 1;
}

void one_check(Html& out, const Json& check, Budget& budget) {
  const std::string verdict = text_at(check, {"verdict"});
  out << (verdict == "fail" ? Markup("<details class=\"check bad\"><summary>")
                            : Markup("<details class=\"check\"><summary>"));
  out << verdict_badge(verdict) << " <b>";
  out.text(text_at(check, {"id"})) << "</b>";
  if (const std::string effort = text_at(check, {"effort"}); !effort.empty()) {
    out << " <span class=\"quiet\">";
    out.text("effort " + effort) << "</span>";
  }
  if (const auto attempt = integer_at(check, {"attempt"}); attempt && *attempt > 0) {
    out << " <span class=\"quiet\">";
    out.text("attempt " + std::to_string(*attempt + 1)) << "</span>";
  }
  if (const std::string detail = text_at(check, {"detail"}); !detail.empty()) {
    out << "<span class=\"why\">";
    out.text(ellipsis(one_line(detail), 300)) << "</span>";
  }
  out << "</summary>";
  if (const std::string proves = text_at(check, {"proves"}); !proves.empty()) {
    out << "<p><b>Proves</b> ";
    out.text(proves) << "</p>";
  }
  if (const std::string detail = text_at(check, {"detail"}); length(detail) > 300)
    block(out, "Why", detail, budget);
  const Json& request = at(check, {"request"});
  if (!request.is_null())
    block(out, "Request", request.is_string() ? plain(request) : base::pretty(request), budget);
  answer(out, at(check, {"answer"}), budget);
  const Json& evidence = at(check, {"evidence"});
  if (!evidence.is_null() && !evidence.empty())
    block(out, "Evidence", base::pretty(evidence), budget);
  std::string rows;
  for (const Json& row : list_at(check, {"rows"})) rows += (rows.empty() ? "" : ", ") + plain(row);
  if (!rows.empty()) out << note("Rows of requests.jsonl: " + ellipsis(rows, 200));
  out << "</details>";
}

}  // namespace

Html checks_section(const Facts& facts) {
  const Json& checks = list_at(facts.checks, {"checks"});
  if (checks.empty()) return empty_state("No check was run.");
  std::vector<const Json*> ordered;
  for (const Json& check : checks) ordered.push_back(&check);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Json* a, const Json* b) { return rank(*a) < rank(*b); });
  int passed = 0, failed = 0;
  for (const Json* check : ordered) {
    passed += rank(*check) == 2;
    failed += rank(*check) == 0;
  }
  Html out;
  out << "<p>";
  out.text(std::to_string(passed) + " passed, " + std::to_string(failed) + " failed, " +
           std::to_string(static_cast<int>(ordered.size()) - passed - failed) +
           " skipped. Failed ones stand first. Open a line for the "
           "request, the whole answer and what was made of it.");
  out << "</p><div class=\"checks\">";
  Budget budget;
  for (const Json* check : ordered) one_check(out, *check, budget);
  out << "</div>";
  return out;
}

}  // namespace anvil::report
