#include <algorithm>

#include "report/html_parts.h"
#include "report/json_read.h"
#include "report/load_view.h"
#include "report/markdown.h"
#include "report/text.h"

namespace anvil::report {

namespace {

std::string verdict_words(std::string_view verdict) {
  if (verdict == "pass" || verdict == "match") return std::string(verdict);
  if (verdict == "fail" || verdict == "mismatch") return "**" + std::string(verdict) + "**";
  if (verdict == "not-measured") return "**not measured**";
  return safe_markdown(verdict);
}

void gates(Markdown& out, const Facts& facts) {
  const auto all = gates_of(facts);
  if (all.empty()) return;
  out.heading("Gates");
  out.head({"Gate", "Verdict", "Value", "Threshold", "Unit", "Where", "If it fails"}, "llrrlll");
  for (const Gate& gate : all)
    out.row({safe_markdown(gate.id), verdict_words(gate.verdict), safe_markdown(gate.value),
             safe_markdown(gate.op + " " + gate.threshold), safe_markdown(gate.unit),
             markdown_code(ellipsis(gate.where, 60)), safe_markdown(gate.on_fail)});
}

void identity(Markdown& out, const Facts& facts) {
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
    out.row({markdown_code(text_at(*field, {"field"})),
             safe_markdown(plain(at(*field, {"declared"}))),
             safe_markdown(plain(at(*field, {"observed"}))),
             safe_markdown(text_at(*field, {"source"}))});
}

void checks(Markdown& out, const Facts& facts) {
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
      out.row({safe_markdown(text_at(check, {"id"})), safe_markdown(text_at(check, {"effort"})),
               safe_markdown(text_at(check, {"detail"}), 200)});
}

std::string dist(const Json& lane, const char* metric, const char* which,
                 std::string (*format)(double)) {
  return escape_markdown(words_of(figure_of(at(lane, {metric}), which), format));
}

void lanes(Markdown& out, const Facts& facts) {
  const Json& all = list_at(facts.results, {"lanes"});
  if (all.empty()) return;
  out.heading("Lanes");
  out.head({"Lane", "State", "Load", "Requests ok", "TTFO p50", "TTFO p90", "E2E p50", "TPOT p50",
            "Decode p50, tok/s", "Aggregate, tok/s"},
           "llrrrrrrrr");
  for (const Json& lane : all) {
    const auto rate = number_at(lane, {"aggregate_output_tok_s"});
    out.row({safe_markdown(text_at(lane, {"id"})),
             safe_markdown(state_words(text_at(lane, {"cache_state"}))),
             safe_markdown(load_words(lane)),
             std::to_string(integer_at(lane, {"requests", "ok"}).value_or(0)) + " of " +
                 std::to_string(integer_at(lane, {"requests", "total"}).value_or(0)),
             dist(lane, "ttfo_ms", "p50", milliseconds), dist(lane, "ttfo_ms", "p90", milliseconds),
             dist(lane, "e2e_ms", "p50", milliseconds), dist(lane, "tpot_ms", "p50", milliseconds),
             dist(lane, "decode_tok_s", "p50", figure), rate ? figure(*rate) : ""});
  }
  const auto invalid = invalid_lanes(facts);
  if (!invalid.empty()) out.line("");
  for (const auto& reason : invalid)
    out.line("> **not valid**, our client was the bottleneck: " + safe_markdown(reason, 300));
}

void ladder(Markdown& out, const Facts& facts) {
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
    out.row({whole("target"), safe_markdown(state_words(text_at(rung, {"state"}))),
             whole("prompt_tokens"), whole("cached_tokens"), ttfo ? milliseconds(*ttfo) : "",
             prefill ? figure(*prefill) : "", retrieval ? figure(*retrieval) : "",
             flag_at(rung, {"accepted"}).value_or(false)
                 ? "accepted"
                 : "**refused** " + safe_markdown(refused, 80)});
  }
}

void chain(Markdown& out, const Facts& facts) {
  out.heading("Chain");
  out.head({"Link", "SHA-256", "Covers"}, "lll");
  for (const Link& link : facts.chain)
    out.row({link.name, link.digest.empty() ? "not in this run" : markdown_code(link.digest),
             link.covers + (link.broken ? "; **" + safe_markdown(link.note) + "**" : "")});
}

}  // namespace

std::string markdown_page(const Facts& facts) {
  const Verdict verdict = verdict_of(facts);
  Markdown out;
  out.line("## " + safe_markdown(text_at(facts.manifest, {"recipe", "name"})) + ": " +
           safe_markdown(verdict.word));
  out.line("");
  out.line(safe_markdown(verdict.sentence, 400));
  const auto all = gates_of(facts);
  bool any = false;
  for (const Gate& gate : all) {
    if (gate.verdict == "pass") continue;
    if (!any) out.line("");
    any = true;
    out.line(
        "- **" + std::string(gate.verdict == "fail" ? "failed" : "not measured") + "** " +
        safe_markdown(gate.id) + ": " +
        (gate.verdict == "fail" ? safe_markdown(gate.value + " " + gate.unit) + ", wanted "
                                : "wanted ") +
        safe_markdown(gate.op + " " + gate.threshold + (gate.unit.empty() ? "" : " " + gate.unit)) +
        (gate.because.empty() ? "" : "; " + safe_markdown(gate.because)));
  }
  out.line("");
  out.head({"Tested", ""}, "ll");
  for (const Fact& fact : subject_of(facts)) out.row({fact.label, safe_markdown(fact.value, 240)});
  for (const auto& problem : facts.problems) {
    out.line("");
    out.line("> " + safe_markdown(problem, 300));
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
  out.line("Recompute everything: " + markdown_code(verify_command(facts)));
  return out.take();
}

}  // namespace anvil::report
