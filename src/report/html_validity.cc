#include "report/html_parts.h"
#include "report/json_read.h"
#include "report/load_view.h"
#include "report/text.h"

namespace anvil::report {

namespace {

Markup mark_class(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return "good";
    case Tone::kWatch:
      return "watch";
    case Tone::kBad:
      return "bad";
    case Tone::kPlain:
      break;
  }
  return "plain";
}

void callout(Html& out, Markup classes, Markup title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  out << "<div";
  out.attribute("class", classes.text) << "><p><b>" << title << "</b></p><ul>";
  for (const auto& line : lines) {
    out << "<li>";
    out.text(ellipsis(one_line(line), 400)) << "</li>";
  }
  out << "</ul></div>";
}

}  // namespace

Html validity_strip(const Facts& facts, const Json& lane) {
  const Validity validity = validity_of(facts, lane);
  Html out;
  callout(out, "callout bad", "Not valid: our client was the bottleneck, not the engine.",
          validity.invalid_reasons);
  if (validity.known && !validity.valid && validity.invalid_reasons.empty())
    callout(out, "callout bad", "Not valid.", {"no reason was recorded"});
  callout(out, "callout watch", "To know when reading these numbers", validity.warnings);
  if (!validity.marks.empty()) {
    out << "<dl class=\"validity\" aria-label=\"Can the client be believed?\">";
    for (const Mark& mark : validity.marks) {
      out << "<div";
      out.attribute("class", mark_class(mark.tone).text) << "><dt>";
      out.text(mark.label) << "</dt><dd>";
      out.text(mark.value);
      if (!mark.note.empty()) {
        out << "<small>";
        out.text(ellipsis(mark.note, 200)) << "</small>";
      }
      out << "</dd></div>";
    }
    out << "</dl>";
  }
  if (!validity.refused.empty()) {
    out << "<p class=\"note\">Refused, because our own error is more than 2 % of the value and "
           "more "
           "than 1 ms: ";
    bool first = true;
    for (const RefusedPercentile& each : validity.refused) {
      if (!first) out << "; ";
      first = false;
      out.text(each.metric + " " + each.which + " ") << "<s>";
      out.text(milliseconds(each.value_ms)) << "</s> ";
      out.text("(error " + milliseconds(each.client_error_ms) + ")");
    }
    out << ".</p>";
  }
  return out;
}

Html goodput_table(const Json& lanes) {
  Table table("sortable titled", "Goodput: requests that met every objective of their lane");
  table.head({{"Lane"},
              {"Objective"},
              {"Met it", true},
              {"Holds"},
              {"Proven at 99 %"},
              {"Met all", true},
              {"Goodput, requests/s", true}});
  for (const Json& lane : lanes) {
    const Json& goodput = at(lane, {"goodput"});
    for (const Json& objective : list_at(goodput, {"objectives"})) {
      const bool holds = flag_at(objective, {"holds"}).value_or(false),
                 proven = flag_at(objective, {"proven"}).value_or(false);
      const auto of = [](const Json& from) {
        const auto met = integer_at(from, {"met"}), all = integer_at(from, {"of"});
        return met && all ? count(*met) + " of " + count(*all) : std::string("none");
      };
      table.row(holds ? Markup("") : Markup("watch")).cell(text_at(lane, {"id"}), "key");
      table.cell(objective_words(objective), "tight").number(of(objective));
      table.html(badge(holds ? "yes" : "no", holds ? Tone::kGood : Tone::kBad))
          .html(badge(proven ? "yes" : "no", proven ? Tone::kGood : Tone::kPlain));
      table.number(of(goodput));
      const auto rate = number_at(goodput, {"req_s"});
      rate ? table.number(figure(*rate), *rate) : table.number("none");
    }
  }
  return table.empty() ? Html() : table.finish();
}

}  // namespace anvil::report
