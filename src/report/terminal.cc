#include <algorithm>
#include <array>
#include <cmath>

#include "base/strings.h"
#include "report/html_parts.h"
#include "report/json_read.h"
#include "report/load_view.h"
#include "report/screen.h"
#include "report/text.h"

namespace anvil::report {

namespace {

// A bar of eighths.
std::string bar(double share, size_t width) {
  static constexpr std::array<std::string_view, 8> kEighths = {"",
                                                               "\xE2\x96\x8F",
                                                               "\xE2\x96\x8E",
                                                               "\xE2\x96\x8D",
                                                               "\xE2\x96\x8C",
                                                               "\xE2\x96\x8B",
                                                               "\xE2\x96\x8A",
                                                               "\xE2\x96\x89"};
  const auto eighths = static_cast<size_t>(
      std::llround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width) * 8));
  std::string out;
  for (size_t i = 0; i < eighths / 8; ++i) out += "\xE2\x96\x88";
  out += kEighths[eighths % 8];
  if (out.empty() && share > 0) out = "\xE2\x96\x8F";
  return out;
}

std::string mark(std::string_view verdict) {
  if (verdict == "pass") return "\xE2\x9C\x93";
  if (verdict == "fail") return "\xE2\x9C\x97";
  return "?";
}

void gates(Screen& out, const Facts& facts) {
  const auto all = gates_of(facts);
  if (all.empty()) return;
  const GateCounts counts = count_gates(all);
  out.heading("Gates  " + std::to_string(counts.failed) + " failed, " +
              std::to_string(counts.not_measured) + " not measured, " +
              std::to_string(counts.passed) + " passed");
  const size_t id = std::min<size_t>(30, out.columns() / 3);
  for (const Gate& gate : all) {
    const std::string unit = gate.unit.empty() ? "" : " " + gate.unit;
    const std::string head = "  " + mark(gate.verdict) + " " + left(one_line(gate.id), id) + " ";
    out.raw(out.ink(head, ink_of(gate.tone())) +
            ellipsis(one_line(gate.value + (gate.verdict == "not-measured" ? "" : unit) + "  (" +
                              gate.op + " " + gate.threshold + unit + ")"),
                     out.columns() - length(head)));
    if (gate.verdict != "pass" && !gate.because.empty()) {
      const std::string because = one_line(gate.because);
      out.wrapped("      " + because, 6, Ink::kQuiet);
    }
  }
}

void lanes(Screen& out, const Facts& facts) {
  const Json& all = list_at(facts.results, {"lanes"});
  if (all.empty()) return;
  out.heading("Lanes  medians; ~ marks few samples");
  double most = 0;
  for (const Json& lane : all)
    most = std::max(most, number_at(lane, {"aggregate_output_tok_s"}).value_or(0));
  const auto median = [](const Json& lane, const char* metric,
                         std::string (*format)(double)) -> std::string {
    const Figure f = figure_of(at(lane, {metric}), "p50");
    if (f.kind == Figure::Kind::kValue) return format(f.value);
    if (f.kind == Figure::Kind::kBelowFloor) return "~" + format(f.value);
    return f.kind == Figure::Kind::kAbsent ? "none" : "refused";
  };
  const size_t fixed_width = 2 + 16 + 8 + 10 + 10 + 9 + 9;
  const size_t bar_width =
      out.columns() > fixed_width + 6 ? std::min<size_t>(out.columns() - fixed_width - 2, 30) : 0;
  out.line("  " + left("lane", 16) + right("ok", 8) + right("TTFO", 10) + right("E2E", 10) +
               right("tok/s", 9) + right("all tok/s", 10),
           Ink::kQuiet);
  for (const Json& lane : all) {
    const auto rate = number_at(lane, {"aggregate_output_tok_s"});
    const std::string ok = std::to_string(integer_at(lane, {"requests", "ok"}).value_or(0)) + "/" +
                           std::to_string(integer_at(lane, {"requests", "total"}).value_or(0));
    out.line("  " + left(one_line(text_at(lane, {"id"})), 16) + right(ok, 8) +
             right(median(lane, "ttfo_ms", milliseconds), 10) +
             right(median(lane, "e2e_ms", milliseconds), 10) +
             right(median(lane, "decode_tok_s", figure), 9) +
             right(rate ? figure(*rate) : "none", 10) +
             (rate && most > 0 ? " " + bar(*rate / most, bar_width) : ""));
  }
  for (const auto& reason : invalid_lanes(facts))
    out.wrapped("  not valid, our client was the bottleneck: " + one_line(reason), 4, Ink::kBad);
}

void ladder(Screen& out, const Facts& facts) {
  const Json& rungs = list_at(facts.results, {"ladder", "rungs"});
  if (rungs.empty()) return;
  out.heading("Context ladder  bars: effective prefill");
  double most = 0;
  for (const Json& rung : rungs)
    most = std::max(most, number_at(rung, {"effective_prefill_tok_s"}).value_or(0));
  const size_t fixed_width = 2 + 10 + 15 + 10 + 10 + 11;
  const size_t bar_width =
      out.columns() > fixed_width + 6 ? std::min<size_t>(out.columns() - fixed_width - 1, 30) : 0;
  out.line("  " + right("tokens", 10) + "  " + left("state", 13) + right("TTFO", 10) +
               right("prefill/s", 10) + right("retrieval", 11),
           Ink::kQuiet);
  for (const Json& rung : rungs) {
    const auto target = integer_at(rung, {"target"});
    const auto ttfo = number_at(rung, {"ttfo_ms"}),
               prefill = number_at(rung, {"effective_prefill_tok_s"}),
               found = number_at(rung, {"retrieval"});
    const std::string head = "  " + right(target ? count(*target) : "none", 10) + "  " +
                             left(one_line(state_words(text_at(rung, {"state"}))), 13);
    if (!flag_at(rung, {"accepted"}).value_or(false)) {
      out.line(head + "  refused: " + one_line(text_at(rung, {"refused"})), Ink::kWatch);
      continue;
    }
    out.line(head + right(ttfo ? milliseconds(*ttfo) : "none", 10) +
             right(prefill ? figure(*prefill) : "none", 10) +
             right(found ? figure(*found) : "none", 11) +
             (prefill && most > 0 ? " " + bar(*prefill / most, bar_width) : ""));
  }
}

void checks(Screen& out, const Facts& facts) {
  const Json& all = list_at(facts.checks, {"checks"});
  if (all.empty()) return;
  int passed = 0, failed = 0;
  for (const Json& check : all) {
    passed += text_at(check, {"verdict"}) == "pass";
    failed += text_at(check, {"verdict"}) == "fail";
  }
  out.heading("Checks  " + std::to_string(passed) + " passed, " + std::to_string(failed) +
              " failed, " + std::to_string(static_cast<int>(all.size()) - passed - failed) +
              " skipped");
  for (const Json& check : all) {
    const std::string verdict = text_at(check, {"verdict"});
    if (verdict == "pass") continue;
    const std::string effort = text_at(check, {"effort"});
    const std::string words =
        one_line("  " + (verdict == "fail" ? mark(verdict) : std::string("-")) + " " +
                 text_at(check, {"id"}) + (effort.empty() ? "" : " (" + effort + ")") + ": " +
                 ellipsis(text_at(check, {"detail"}), 200));
    out.wrapped(words, 6, verdict == "fail" ? Ink::kBad : Ink::kQuiet);
  }
}

}  // namespace

std::string terminal_page(const Facts& facts, bool colour, int columns) {
  Screen out(colour, columns);
  const Verdict verdict = verdict_of(facts);
  const std::string name = one_line(text_at(facts.manifest, {"recipe", "name"}));
  out.line((name.empty() ? "Run without a recipe name" : name), Ink::kBold);
  out.line(one_line(facts.run_id), Ink::kQuiet);
  out.blank();
  out.wrapped(one_line(verdict.word) + ": " + one_line(ellipsis(verdict.sentence, 400)), 2,
              ink_of(verdict.tone));
  for (const auto& problem : facts.problems) out.wrapped("! " + one_line(problem), 2, Ink::kWatch);
  out.heading("Tested");
  for (const Fact& fact : subject_of(facts))
    out.wrapped("  " + left(fact.label, 12) + one_line(ellipsis(fact.value, 300)), 14);
  gates(out, facts);
  checks(out, facts);
  lanes(out, facts);
  ladder(out, facts);
  size_t failed = 0;
  for (const Request& request : facts.requests) failed += request.ok() ? 0 : 1;
  if (failed > 0) {
    out.heading("Failed requests  " + count(static_cast<int64_t>(failed)) + " of " +
                count(static_cast<int64_t>(facts.requests.size())));
    const auto provoked = provoked_failures(facts);
    size_t shown = 0;
    for (const Request& request : facts.requests) {
      if (request.ok()) continue;
      if (shown++ == 10) {
        out.line("  ... and " + std::to_string(failed - 10) + " more in the HTML report",
                 Ink::kQuiet);
        break;
      }
      out.wrapped("  #" + std::to_string(request.seq) + " " + one_line(request.lane) + " " +
                      std::string(evidence::name(request.outcome)) +
                      (provoked.contains(request.seq) ? ", provoked by its check: " : ": ") +
                      one_line(ellipsis(request.error_detail, 200)),
                  6);
    }
  }
  out.blank();
  out.wrapped("Verify: " + one_line(verify_command(facts)), 8, Ink::kQuiet);
  return out.take();
}

}  // namespace anvil::report
