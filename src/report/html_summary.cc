#include <algorithm>

#include "base/strings.h"
#include "report/html_parts.h"
#include "report/json_read.h"
#include "report/load_view.h"
#include "report/text.h"

namespace anvil::report {

namespace {

Markup strip_class(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return "strip good";
    case Tone::kWatch:
      return "strip watch";
    case Tone::kBad:
      return "strip bad";
    case Tone::kPlain:
      break;
  }
  return "strip plain";
}

void facts_list(Html& out, const std::vector<Fact>& facts) {
  out << "<dl class=\"facts\">";
  for (const Fact& fact : facts) {
    out << "<div><dt>";
    out.text(fact.label) << "</dt><dd>";
    out.text(fact.value) << "</dd></div>";
  }
  out << "</dl>";
}

// "ttfo_ms <= 250 ms"
std::string wanted(const Gate& gate) {
  return gate.op + " " + gate.threshold + (gate.unit.empty() ? "" : " " + gate.unit);
}

Html because(const Gate& gate) {
  Html out;
  out << "<span>";
  out.text(gate.because);
  if (!gate.detail.empty()) {
    out << "<small>";
    out.text(gate.detail) << "</small>";
  }
  out << "</span>";
  return out;
}

void gate_line(Html& out, const Gate& gate) {
  out << "<li>" << verdict_badge(gate.verdict) << " <b>";
  out.text(gate.id) << "</b> ";
  if (gate.verdict == "fail")
    out.text(gate.value + (gate.unit.empty() ? "" : " " + gate.unit) + ", wanted " + wanted(gate));
  else
    out.text("wanted " + wanted(gate) + (gate.detail.empty() ? "" : "; " + gate.detail));
  if (!gate.because.empty()) {
    out << " <span class=\"quiet\">";
    out.text(gate.because) << "</span>";
  }
  out << "</li>";
}

void tiles(Html& out, const Facts& facts) {
  const auto all = tiles_of(facts);
  if (all.empty()) return;
  out << "<dl class=\"tiles\">";
  for (const Tile& tile : all) {
    out << "<div><dt>";
    out.text(tile.label) << "</dt><dd><b>";
    out.text(tile.value) << "</b> ";
    out.text(tile.unit);
    if (!tile.note.empty()) {
      out << "<small>";
      out.text(tile.note) << "</small>";
    }
    out << "</dd></div>";
  }
  out << "</dl>";
}

}  // namespace

Html verdict_strip(const Facts& facts) {
  const Verdict verdict = verdict_of(facts);
  const auto gates = gates_of(facts);
  const GateCounts counts = count_gates(gates);
  Html out;
  out << "<div";
  out.attribute("class", strip_class(verdict.tone).text)
      << " role=\"group\" aria-label=\"Verdict\"><div class=\"decision\">"
      << "<p class=\"word\">";
  out.text(verdict.word) << "</p><p class=\"sentence\">";
  out.text(ellipsis(one_line(verdict.sentence), 400)) << "</p></div>";
  if (!gates.empty()) {
    out << "<ul class=\"counts\" aria-label=\"Gates\">";
    const auto add = [&](int n, Markup classes, const char* words) {
      out << "<li";
      out.attribute("class", n > 0 ? classes.text : std::string_view("zero")) << "><b>";
      out.text(std::to_string(n)) << "</b> ";
      out.text(words) << "</li>";
    };
    add(counts.failed, "bad", "failed");
    add(counts.not_measured, "watch", "not measured");
    add(counts.passed, "good", "passed");
    out << "</ul>";
  }
  out << "</div>";
  const Json& failure = at(facts.launch, {"failure"});
  if (failure.is_object()) {
    out << "<div class=\"callout bad\"><p><b>"
        << (at(facts.launch, {"ready_ns"}).is_null() ? Markup("The engine did not come up")
                                                     : Markup("The engine died"));
    if (const std::string phase = text_at(failure, {"phase"}); !phase.empty())
      out.text(" (phase " + phase + ")");
    out << ".</b> ";
    out.text(text_at(failure, {"hint"})) << "</p>";
    if (const std::string line = text_at(failure, {"line"}); !line.empty()) {
      out << "<pre dir=\"auto\">";
      out.text(ellipsis(line, 600)) << "</pre>";
    }
    out << "</div>";
  }
  if (const auto invalid = invalid_lanes(facts); !invalid.empty()) {
    out << "<div class=\"callout bad\"><p><b>Our client was the bottleneck, so these numbers are "
           "not the engine's.</b></p><ul>";
    for (const auto& reason : invalid) {
      out << "<li>";
      out.text(ellipsis(one_line(reason), 400)) << "</li>";
    }
    out << "</ul></div>";
  }
  const bool promoted = verdict.tone == Tone::kGood || verdict.tone == Tone::kPlain;
  if (counts.failed + counts.not_measured > 0 || (!promoted && !verdict.other_reasons.empty())) {
    out << "<ul class=\"open-gates\" aria-label=\"Reasons, failed and unmeasured gates first\">";
    for (const Gate& gate : gates)
      if (gate.verdict != "pass") gate_line(out, gate);
    for (const auto& reason : verdict.other_reasons) {
      out << "<li>" << badge("reason", Tone::kPlain) << " ";
      out.text(reason) << "</li>";
    }
    out << "</ul>";
  }
  if (!verdict.reasons.empty()) {
    out << "<details class=\"reasons\"><summary>Reasons as recorded in decision.json</summary><ul>";
    for (const auto& reason : verdict.reasons) {
      out << "<li>";
      out.text(reason) << "</li>";
    }
    out << "</ul></details>";
  }
  if (!facts.decided && !text_at(facts.decision, {"decision"}).empty())
    out << note(incomplete_words(facts));
  if (facts.derived_here && facts.results.is_object())
    out << note(
        "This run holds no results.json; the numbers here were derived from its raw records for "
        "this page.");
  for (const auto& problem : facts.problems) {
    out << "<div class=\"callout watch\"><p>";
    out.text(problem) << "</p></div>";
  }
  tiles(out, facts);
  return out;
}

Html subject_section(const Facts& facts) {
  Html out;
  facts_list(out, subject_of(facts));
  if (!facts.recipe_text.empty())
    out << "<details><summary>The recipe as it was frozen</summary>"
        << text_block(facts.recipe_text, 24 << 10, "recipe.toml") << "</details>";
  return out;
}

Html chain_section(const Facts& facts) {
  Html out;
  out << "<p>What this page is made from, in the order in which it came to be: what was asked for, "
         "what was executed, what was "
         "seen, what follows from it. <code>anvil verify</code> recomputes every digest and names "
         "the artifact that differs.</p>"
         "<ol class=\"chain\">";
  for (const Link& link : facts.chain) {
    out << (link.broken           ? Markup("<li class=\"broken\">")
            : link.digest.empty() ? Markup("<li class=\"absent\">")
                                  : Markup("<li>"));
    out << "<b>";
    out.text(link.name) << "</b> <span class=\"quiet\">";
    out.text(link.covers) << "</span>";
    if (link.digest.empty()) {
      out << "<code class=\"digest quiet\">not in this run</code>";
    } else {
      out << "<code class=\"digest\">";
      out.text(link.digest) << "</code>";
    }
    if (!link.note.empty()) {
      out << (link.broken ? Markup("<span class=\"agree bad\">")
                          : Markup("<span class=\"agree good\">"));
      out.text(link.note) << "</span>";
    }
    out << "</li>";
  }
  out << "</ol>"
      << note(
             "SHA-256. The first four are digests of canonical forms; the others are of the "
             "artifacts' contents, "
             "uncompressed.");
  return out;
}

Html gates_section(const Facts& facts) {
  const auto gates = gates_of(facts);
  if (gates.empty())
    return empty_state(facts.decision.is_object()
                           ? "The policy holds no gate."
                           : "No gate was evaluated: the run ended before its decision.");
  Table table("sortable stack gates", "Gates of the frozen policy");
  table.head({{"Gate"},
              {"Verdict"},
              {"Value", true},
              {"Threshold", true},
              {"Unit"},
              {"Where"},
              {"Because"}});
  for (const Gate& gate : gates) {
    table.row(gate.verdict == "fail"   ? Markup("bad")
              : gate.verdict == "pass" ? Markup("")
                                       : Markup("watch"));
    Html name;
    name << "<span>";
    name.text(gate.id);
    if (!gate.on_fail.empty()) {
      name << "<small>";
      name.text("if it fails: " + gate.on_fail) << "</small>";
    }
    name << "</span>";
    table.html(name, "key").html(verdict_badge(gate.verdict));
    table.number(gate.verdict == "not-measured" ? "none" : gate.value)
        .number(gate.op + " " + gate.threshold);
    table.cell(gate.unit, "unit")
        .html(path_words(gate.where), "where")
        .html(because(gate), "prose");
  }
  return table.finish();
}

Html identity_section(const Facts& facts) {
  const Json& fields = list_at(facts.identity, {"fields"});
  if (fields.empty()) return empty_state("The engine was never asked who it is.");
  std::vector<const Json*> ordered;
  for (const Json& field : fields) ordered.push_back(&field);
  const auto rank = [](const Json* field) {
    const std::string verdict = text_at(*field, {"verdict"});
    return verdict == "mismatch" ? 0 : verdict == "match" ? 1 : 2;
  };
  std::stable_sort(ordered.begin(), ordered.end(),
                   [&](const Json* a, const Json* b) { return rank(a) < rank(b); });
  int matches = 0, mismatches = 0;
  for (const Json* field : ordered) {
    matches += rank(field) == 1;
    mismatches += rank(field) == 0;
  }
  Html out;
  out << "<p>";
  out.text(std::to_string(matches) + " of " + std::to_string(ordered.size()) +
           " declared fields were seen to be as declared, " + std::to_string(mismatches) +
           (mismatches == 1 ? " was" : " were") + " seen to differ, " +
           std::to_string(static_cast<int>(ordered.size()) - matches - mismatches) +
           " cannot be seen on this engine.");
  if (const std::string model = text_at(facts.identity, {"served_model"}); !model.empty()) {
    out << " It serves <code>";
    out.text(model) << "</code>.";
  }
  out << "</p>";
  Table table("sortable stack", "Declared and observed identity");
  table.head({{"Field"}, {"Verdict"}, {"Declared"}, {"Observed"}, {"Seen at"}});
  for (const Json* field : ordered) {
    const std::string verdict = text_at(*field, {"verdict"});
    const Json& observed = at(*field, {"observed"});
    table.row(verdict == "mismatch" ? Markup("bad") : Markup(""));
    table.cell(text_at(*field, {"field"}), "key").html(verdict_badge(verdict));
    table.cell(ellipsis(plain(at(*field, {"declared"})), 200), "wrap");
    table.cell(observed.is_null() ? "" : ellipsis(plain(observed), 200), "wrap");
    table.html(path_words(text_at(*field, {"source"})), "where");
  }
  out << table.finish();
  return out;
}

Html fingerprint_section(const Facts& facts) {
  const Json& print = at(facts.checks, {"fingerprint"});
  const Json& efforts = list_at(print, {"efforts"});
  if (efforts.empty()) return empty_state("No fingerprint was taken.");
  Html out;
  out << "<p>Prompt tokens of one fixed conversation: they show which chat template and which "
         "effort handling is really served. "
         "Counted by <b>";
  out.text(text_at(print, {"method"}))
      << "</b>, verdict " << verdict_badge(text_at(print, {"verdict"})) << "</p>";
  Table table("narrow", "Prompt fingerprint by reasoning effort");
  table.head({{"Effort"},
              {"Prompt tokens", true},
              {"Difference to the first", true},
              {"Declared", true},
              {"Verdict"}});
  for (const Json& each : efforts) {
    const std::string effort = text_at(each, {"effort"});
    const Json& declared = at(each, {"declared"});
    const Json& delta = at(each, {"delta"});
    table.row().cell(effort.empty() ? "none sent" : effort, "key");
    table.number(plain(at(each, {"prompt_tokens"})), number_at(each, {"prompt_tokens"}));
    table.number(delta.is_null() ? "" : plain(delta))
        .number(declared.is_null() ? "not declared" : plain(declared));
    table.html(verdict_badge(text_at(each, {"verdict"})));
  }
  out << table.finish();
  return out;
}

Html environment_section(const Facts& facts) {
  Html out;
  const auto environment = environment_of(facts);
  if (environment.empty() && !facts.launch.is_object())
    return empty_state("The host was not recorded.");
  facts_list(out, environment);
  const Json& spec = at(facts.launch, {"spec"});
  const Json& argv = list_at(spec, {"argv"});
  if (!argv.empty()) {
    std::string words;
    for (const Json& word : argv)
      words += (words.empty() ? "" : " ") + base::shell_quote(plain(word));
    out << "<h3>Command line as executed</h3>" << text_block(words, 16 << 10, "launch.json");
  }
  const auto add_map = [&](const char* key, Markup caption, Markup value) {
    const Json& map = at(spec, {key});
    if (!map.is_object() || map.empty()) return;
    Table table("narrow titled", caption);
    table.head({{"Name"}, {value}});
    for (const auto& [name, each] : map.items())
      table.row().cell(name, "key").cell(ellipsis(plain(each), 300), "wrap");
    out << table.finish();
  };
  add_map("env", "Environment added by the recipe", "Value");
  add_map("secrets", "Secrets, by reference only", "Comes from");
  return out;
}

}  // namespace anvil::report
