#include <algorithm>

#include "report/html_parts.h"
#include "report/json_read.h"
#include "report/text.h"

namespace anvil::report {

namespace {

// Collects GitHub-flavoured Markdown. Foreign words pass through escape_markdown(), code through
// code().
class Writer {
 public:
  void heading(std::string_view words) { out_ += "\n### " + std::string(words) + "\n\n"; }
  void line(std::string_view words) { out_ += std::string(words) + "\n"; }
  void row(const std::vector<std::string>& cells) {
    out_ += "|";
    for (const auto& cell : cells)
      out_ += " " + (cell.empty() ? std::string("\xE2\x80\x94") : cell) + " |";
    out_ += "\n";
  }
  // `shape`: one character per column, 'l' or 'r'.
  void head(const std::vector<std::string>& cells, std::string_view shape) {
    row(cells);
    out_ += "|";
    for (const char c : shape) out_ += c == 'r' ? " ---: |" : " --- |";
    out_ += "\n";
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

std::string safe(std::string_view text, size_t limit = 160) {
  return escape_markdown(ellipsis(one_line(text), limit));
}

std::string code(std::string_view text) {
  std::string inner = one_line(text);
  std::replace(inner.begin(), inner.end(), '`', '\'');
  std::replace(inner.begin(), inner.end(), '|', '/');
  return inner.empty() ? std::string() : "`" + inner + "`";
}

std::string verdict_words(std::string_view verdict) {
  if (verdict == "pass" || verdict == "match") return std::string(verdict);
  if (verdict == "fail" || verdict == "mismatch") return "**" + std::string(verdict) + "**";
  if (verdict == "not-measured") return "**not measured**";
  return safe(verdict);
}

void gates(Writer& out, const Facts& facts) {
  const auto all = gates_of(facts);
  if (all.empty()) return;
  out.heading("Gates");
  out.head({"Gate", "Verdict", "Value", "Threshold", "Unit", "Where", "If it fails"}, "llrrlll");
  for (const Gate& gate : all)
    out.row({safe(gate.id), verdict_words(gate.verdict), safe(gate.value),
             safe(gate.op + " " + gate.threshold), safe(gate.unit), code(ellipsis(gate.where, 60)),
             safe(gate.on_fail)});
}

void identity(Writer& out, const Facts& facts) {
  const Json& fields = list_at(facts.identity, {"fields"});
  if (fields.empty()) return;
  int match = 0, hidden = 0;
  std::vector<const Json*> wrong;
  for (const Json& field : fields) {
    const std::string verdict = text_at(field, {"verdict"});
    if (verdict == "match")
      ++match;
    else if (verdict == "mismatch")
      wrong.push_back(&field);
    else
      ++hidden;
  }
  out.heading("Identity");
  out.line(std::to_string(match) + " declared fields seen as declared, " +
           std::to_string(wrong.size()) + " seen to differ, " + std::to_string(hidden) +
           " not observable.");
  if (wrong.empty()) return;
  out.line("");
  out.head({"Field", "Declared", "Observed", "Seen at"}, "llll");
  for (const Json* field : wrong)
    out.row({code(text_at(*field, {"field"})), safe(plain(at(*field, {"declared"}))),
             safe(plain(at(*field, {"observed"}))), safe(text_at(*field, {"source"}))});
}

void checks(Writer& out, const Facts& facts) {
  const Json& all = list_at(facts.checks, {"checks"});
  if (all.empty()) return;
  int passed = 0, failed = 0;
  for (const Json& check : all) {
    const std::string verdict = text_at(check, {"verdict"});
    passed += verdict == "pass";
    failed += verdict == "fail";
  }
  out.heading("Checks");
  out.line(std::to_string(passed) + " passed, " + std::to_string(failed) + " failed, " +
           std::to_string(static_cast<int>(all.size()) - passed - failed) + " skipped.");
  if (failed == 0) return;
  out.line("");
  out.head({"Failed check", "Effort", "Why"}, "lll");
  for (const Json& check : all)
    if (text_at(check, {"verdict"}) == "fail")
      out.row({safe(text_at(check, {"id"})), safe(text_at(check, {"effort"})),
               safe(text_at(check, {"detail"}), 200)});
}

std::string dist(const Json& lane, const char* metric, const char* which,
                 std::string (*format)(double)) {
  return escape_markdown(words_of(figure_of(at(lane, {metric}), which), format));
}

void lanes(Writer& out, const Facts& facts) {
  const Json& all = list_at(facts.results, {"lanes"});
  if (all.empty()) return;
  out.heading("Lanes");
  out.head({"Lane", "State", "Streams", "Requests ok", "TTFO p50", "TTFO p90", "E2E p50",
            "TPOT p50", "Decode p50, tok/s", "Aggregate, tok/s"},
           "llrrrrrrrr");
  for (const Json& lane : all) {
    const auto rate = number_at(lane, {"aggregate_output_tok_s"});
    out.row({safe(text_at(lane, {"id"})), safe(state_words(text_at(lane, {"cache_state"}))),
             plain(at(lane, {"concurrency"})),
             std::to_string(integer_at(lane, {"requests", "ok"}).value_or(0)) + " of " +
                 std::to_string(integer_at(lane, {"requests", "total"}).value_or(0)),
             dist(lane, "ttfo_ms", "p50", milliseconds), dist(lane, "ttfo_ms", "p90", milliseconds),
             dist(lane, "e2e_ms", "p50", milliseconds), dist(lane, "tpot_ms", "p50", milliseconds),
             dist(lane, "decode_tok_s", "p50", figure), rate ? figure(*rate) : ""});
  }
}

void ladder(Writer& out, const Facts& facts) {
  const Json& rungs = list_at(facts.results, {"ladder", "rungs"});
  if (rungs.empty()) return;
  out.heading("Context ladder");
  out.head({"Target", "State", "Prompt tokens", "Cached", "TTFO", "Effective prefill, tok/s",
            "Retrieval", "Verdict"},
           "rlrrrrrl");
  for (const Json& rung : rungs) {
    const auto whole = [&](const char* key) {
      const auto n = integer_at(rung, {key});
      return n ? count(*n) : std::string();
    };
    const auto ttfo = number_at(rung, {"ttfo_ms"}),
               prefill = number_at(rung, {"effective_prefill_tok_s"}),
               retrieval = number_at(rung, {"retrieval"});
    const std::string refused = text_at(rung, {"refused"});
    out.row({whole("target"), safe(state_words(text_at(rung, {"state"}))), whole("prompt_tokens"),
             whole("cached_tokens"), ttfo ? milliseconds(*ttfo) : "",
             prefill ? figure(*prefill) : "", retrieval ? figure(*retrieval) : "",
             flag_at(rung, {"accepted"}).value_or(false) ? "accepted"
                                                         : "**refused** " + safe(refused, 80)});
  }
}

void chain(Writer& out, const Facts& facts) {
  out.heading("Chain");
  out.head({"Link", "SHA-256", "Covers"}, "lll");
  for (const Link& link : facts.chain)
    out.row({link.name, link.digest.empty() ? "not in this run" : code(link.digest),
             link.covers + (link.broken ? "; **" + safe(link.note) + "**" : "")});
}

}  // namespace

std::string markdown_page(const Facts& facts) {
  const Verdict verdict = verdict_of(facts);
  Writer out;
  out.line("## " + safe(text_at(facts.manifest, {"recipe", "name"})) + ": " + safe(verdict.word));
  out.line("");
  out.line(safe(verdict.sentence, 400));
  const auto all = gates_of(facts);
  bool any = false;
  for (const Gate& gate : all) {
    if (gate.verdict == "pass") continue;
    if (!any) out.line("");
    any = true;
    out.line(
        "- **" + std::string(gate.verdict == "fail" ? "failed" : "not measured") + "** " +
        safe(gate.id) + ": " +
        (gate.verdict == "fail" ? safe(gate.value + " " + gate.unit) + ", wanted " : "wanted ") +
        safe(gate.op + " " + gate.threshold + (gate.unit.empty() ? "" : " " + gate.unit)) +
        (gate.because.empty() ? "" : "; " + safe(gate.because)));
  }
  out.line("");
  out.head({"Tested", ""}, "ll");
  for (const Fact& fact : subject_of(facts)) out.row({fact.label, safe(fact.value, 240)});
  for (const auto& problem : facts.problems) {
    out.line("");
    out.line("> " + safe(problem, 300));
  }
  gates(out, facts);
  identity(out, facts);
  checks(out, facts);
  lanes(out, facts);
  ladder(out, facts);
  size_t failed = 0;
  for (const Request& request : facts.requests) failed += request.ok() ? 0 : 1;
  if (failed > 0) {
    out.heading("Failures");
    out.line(count(static_cast<int64_t>(failed)) + " of " +
             count(static_cast<int64_t>(facts.requests.size())) +
             " requests failed; each is listed in the HTML report.");
  }
  chain(out, facts);
  out.line("");
  out.line("Recompute everything: " + code(verify_command(facts)));
  return out.take();
}

}  // namespace anvil::report
