#include <algorithm>

#include "base/strings.h"
#include "report/campaign.h"
#include "report/html_parts.h"
#include "report/json_read.h"
#include "report/load_view.h"
#include "report/text.h"

namespace anvil::report {

namespace {

Markup strip_class(Tone tone) {
  return tone == Tone::kGood    ? Markup("strip good")
         : tone == Tone::kWatch ? Markup("strip watch")
         : tone == Tone::kBad   ? Markup("strip bad")
                                : Markup("strip plain");
}

Html top(const CampaignView& view) {
  Html out;
  for (const auto& banner : view.banners()) {
    out << "<div";
    out.attribute("class", banner.tone == Tone::kBad     ? "banner bad"
                           : banner.tone == Tone::kWatch ? "banner watch"
                                                         : "banner plain")
        << "><b>";
    out.text(banner.title) << "</b> ";
    out.text(ellipsis(one_line(banner.words), 300)) << "</div>";
  }
  const Verdict verdict = view.verdict();
  out << "<div";
  out.attribute("class", strip_class(verdict.tone).text)
      << " role=\"group\" aria-label=\"Primary effect\"><div class=\"decision\"><p class=\"word\">";
  out.text(verdict.word) << "</p><p class=\"sentence\">";
  out.text(ellipsis(one_line(verdict.sentence), 500)) << "</p></div>";
  if (view.primary != nullptr && view.primary->ratio) {
    const Effect& effect = *view.primary;
    out << "<ul class=\"counts\" aria-label=\"Primary effect in numbers\"><li><b>";
    out.text(ratio_words(effect.ratio)) << "</b> B / A</li><li><b>";
    out.text(effect.value(effect.a)) << "</b> A, median run</li><li><b>";
    out.text(effect.value(effect.b)) << "</b> B, median run</li></ul>";
  }
  out << "</div>";
  return out;
}

Html difference_section(const CampaignView& view) {
  const Json& diff = at(view.campaign.frozen, {"diff"});
  Html out;
  out << "<dl class=\"facts\">";
  for (const Fact& fact : view.design()) {
    out << "<div><dt>";
    out.text(fact.label) << "</dt><dd>";
    out.text(fact.value) << "</dd></div>";
  }
  out << "</dl><h3>What differs</h3>";
  if (view.same) {
    out << empty_state("Nothing: this measures what two runs of the same thing differ by.");
  } else if (view.variables.empty()) {
    out << empty_state("What differs between the arms was not recorded.");
  } else {
    Table table("stack", "Fields that differ");
    table.head({{"Variable"}, {"Field"}, {"A"}, {"B"}});
    for (const Json& variable : list_at(diff, {"changed"}))
      for (const Json& field : list_at(variable, {"fields"})) {
        table.row().cell(text_at(variable, {"variable"}), "key");
        table.html(path_words(text_at(field, {"path"})), "where");
        const auto side = [&](const char* key) {
          const Json& value = at(field, {key});
          table.cell(value.is_null() ? "not set" : ellipsis(plain(value), 300), "wrap");
        };
        side("a");
        side("b");
      }
    out << table.finish();
  }
  const Json& consequences = list_at(diff, {"consequences"});
  if (!consequences.empty()) {
    Table table("stack titled", "What follows from that by itself");
    table.head({{"What"}, {"A"}, {"B"}, {"Because"}});
    for (const Json& each : consequences) {
      table.row().cell(text_at(each, {"what"}), "wrap").cell(plain(at(each, {"a"})), "wrap");
      table.cell(plain(at(each, {"b"})), "wrap").cell(text_at(each, {"because"}), "prose");
    }
    out << table.finish();
  }
  std::vector<std::string> unchanged;
  for (const Json& each : list_at(diff, {"unchanged"})) unchanged.push_back(plain(each));
  if (!unchanged.empty()) out << note("The same in both: " + base::join(unchanged, ", ") + ".");
  return out;
}

Html effects_section(const CampaignView& view) {
  if (view.effects.empty()) return empty_state("No lane was measured in any run that counts.");
  Html out;
  out << forest_chart(view);
  Table table("sortable", "Effects");
  table.head({{"Lane"},
              {"Metric"},
              {"A", true},
              {"B", true},
              {"B / A", true},
              {"Interval", true},
              {"Noise floor", true},
              {"Smallest found", true},
              {"p, Holm", true},
              {"Pairs", true},
              {"Verdict"}});
  const auto number = [&](const std::optional<double>& value, const std::string& words) {
    value ? table.number(words, *value) : table.number("none");
  };
  for (const Effect& effect : view.effects) {
    table.row(effect.tone() == Tone::kBad ? Markup("bad") : Markup("")).cell(effect.lane_id, "key");
    Html name;
    name << "<span>";
    name.text(effect.label);
    if (effect.primary) name << "<small>primary</small>";
    name << "</span>";
    table.html(name, "tight");
    number(effect.a, effect.value(effect.a));
    number(effect.b, effect.value(effect.b));
    number(effect.ratio, ratio_words(effect.ratio));
    number(effect.low, interval_words(effect));
    number(effect.noise_floor, ratio_words(effect.noise_floor));
    number(effect.detectable, ratio_words(effect.detectable));
    const std::optional<double> p = effect.primary ? effect.p : effect.p_holm;
    number(p, p ? figure(*p) : "");
    table.number(count(effect.pairs), static_cast<double>(effect.pairs));
    Html verdict;
    verdict << badge(effect.words(), effect.tone() == Tone::kWatch ? Tone::kPlain : effect.tone());
    // Why something is resolved stands in the columns beside it.
    if (!effect.because.empty() && (!effect.resolved() || effect.verdict == "equivalent")) {
      verdict << "<small>";
      verdict.text(ellipsis(one_line(effect.because), 200)) << "</small>";
    }
    table.html(verdict, "prose");
  }
  out << table.finish()
      << note("The primary endpoint's p is not adjusted: it was the only one declared to decide.");
  return out;
}

// The primary metric of every lane is open to view.
Html order_section(const CampaignView& view) {
  Html panels, more;
  const Effect* first = view.primary != nullptr ? view.primary
                        : view.effects.empty()  ? nullptr
                                                : &view.effects.front();
  if (first == nullptr) return empty_state("No run has a value.");
  panels << run_order_chart(*first);
  for (const Effect& effect : view.effects) {
    if (&effect == first) continue;
    const Html chart = run_order_chart(effect);
    (effect.metric == first->metric ? panels : more) << chart;
  }
  if (panels.empty()) return empty_state("No run has a value.");
  Html out;
  out << "<ul class=\"legend\"><li><i class=\"k dot-a\"></i>A</li><li><i class=\"k "
         "dot-b\"></i>B</li><li><i class=\"k hollow\"></i>excluded</li><li>lines join the runs of "
         "a "
         "pair; broken lines are the medians</li></ul><div class=\"panels two\">"
      << panels << "</div>";
  if (!more.empty())
    out << "<details><summary>The other metrics</summary><div class=\"panels two\">" << more
        << "</div></details>";
  out << note("A drift of the machine shows as a slope that both arms share.");
  return out;
}

Html curves_section(const CampaignView& view) {
  Html out;
  const Json* first = view.primary != nullptr ? view.primary->lane : nullptr;
  const auto add = [&](const Json& lane) {
    const Html curves = arm_curves(view, lane);
    if (curves.empty()) return;
    const bool open = out.empty();
    if (!open) out << "<details><summary>";
    if (open) out << "<h3>";
    out.text("Lane " + text_at(lane, {"id"}));
    out << (open ? Markup("</h3>") : Markup("</summary>")) << curves;
    if (!open) out << "</details>";
  };
  if (first != nullptr) add(*first);
  for (const Json& lane : list_at(view.comparison, {"lanes"}))
    if (&lane != first) add(lane);
  if (out.empty()) return empty_state("No run that counts has a curve.");
  Html legend;
  legend << "<ul class=\"legend\"><li><i class=\"k l1\"></i>A</li><li><i class=\"k "
            "l2\"></i>B</li><li><i class=\"k spread-a\"></i>lowest to highest of the runs</li></ul>"
         << out
         << note(
                "Behind the highest percentile that the pooled samples can certify, the line is "
                "broken.");
  return legend;
}

// The effect over every request that was sent.
Effect counting_all(const Effect& effect) {
  Effect out;
  out.json = &at(*effect.json, {"intention_to_treat"});
  out.ratio = number_at(*out.json, {"ratio"});
  out.low = number_at(*out.json, {"interval", "low"});
  out.high = number_at(*out.json, {"interval", "high"});
  if (!out.low || !out.high) out.low = out.high = std::nullopt;
  out.trusted = flag_at(*out.json, {"interval", "trusted"}).value_or(false);
  return out;
}

Html failures_section(const CampaignView& view) {
  Html out;
  Table counts("narrow titled", "Requests of the runs that count");
  counts.head({{"Lane"},
               {"Arm"},
               {"Runs", true},
               {"Sent", true},
               {"Answered", true},
               {"Failed", true},
               {"Refused", true},
               {"Success", true}});
  for (const Json& lane : list_at(view.comparison, {"lanes"}))
    for (const char* arm : {"a", "b"}) {
      const Json& of = at(lane, {"arms", arm});
      const auto failed = integer_at(of, {"requests", "failed"});
      counts.row(failed.value_or(0) > 0 ? Markup("watch") : Markup(""))
          .cell(text_at(lane, {"id"}), "key")
          .cell(arm[0] == 'a' ? "A" : "B");
      const auto whole = [&](const Json& from, std::initializer_list<const char*> path) {
        const auto n = integer_at(from, path);
        n ? counts.number(count(*n), static_cast<double>(*n)) : counts.number("none");
      };
      whole(of, {"runs"});
      whole(of, {"requests", "total"});
      whole(of, {"requests", "ok"});
      whole(of, {"requests", "failed"});
      whole(of, {"requests", "refused"});
      const auto rate = number_at(of, {"success_rate"});
      rate ? counts.number(fixed(*rate * 100, 2) + " %", *rate) : counts.number("none");
    }
  if (!counts.empty()) out << counts.finish();

  // Without a failure both ways are the same figure.
  const auto lost = [](const Effect& effect) {
    return integer_at(*effect.lane, {"arms", "a", "requests", "failed"}).value_or(0) > 0 ||
           integer_at(*effect.lane, {"arms", "b", "requests", "failed"}).value_or(0) > 0;
  };
  Table both("titled", "Effects in lanes with failures, counted both ways");
  both.head({{"Lane"},
             {"Metric"},
             {"Answered requests: B / A", true},
             {"Interval", true},
             {"All that were sent: B / A", true},
             {"Interval", true},
             {"Note"}});
  for (const Effect& effect : view.effects) {
    if (!lost(effect)) continue;
    const Effect all = counting_all(effect);
    if (!effect.ratio && !all.ratio) continue;
    both.row().cell(effect.lane_id, "key").cell(effect.label, "tight");
    both.number(ratio_words(effect.ratio)).number(interval_words(effect));
    both.number(ratio_words(all.ratio)).number(interval_words(all));
    both.cell(all.ratio ? "" : one_line(text_at(*all.json, {"interval_because"})), "prose");
  }
  if (!both.empty())
    out << both.finish();
  else if (!out.empty())
    out << note("No request failed, so both ways of counting give the same figures.");
  if (out.empty()) return empty_state("No request was sent in a run that counts.");
  return out;
}

Html acceptance_section(const CampaignView& view) {
  Table table("narrow", "Speculation in both arms");
  table.head({{"Lane"},
              {"Arm"},
              {"Drafted", true},
              {"Accepted", true},
              {"Acceptance", true},
              {"Mean length", true},
              {"From"}});
  for (const Json& lane : list_at(view.comparison, {"lanes"}))
    for (const char* arm : {"a", "b"}) {
      const Json& of = at(lane, {"arms", arm, "speculation"});
      if (!of.is_object()) continue;
      table.row().cell(text_at(lane, {"id"}), "key").cell(arm[0] == 'a' ? "A" : "B");
      for (const char* key : {"drafted", "accepted"}) {
        const auto n = integer_at(of, {key});
        n ? table.number(count(*n), static_cast<double>(*n)) : table.number("none");
      }
      const auto share = number_at(of, {"acceptance"}),
                 mean = number_at(of, {"mean_acceptance_length"});
      share ? table.number(fixed(*share * 100, 1) + " %", *share) : table.number("none");
      mean ? table.number(fixed(*mean, 2), *mean) : table.number("none");
      table.cell(text_at(of, {"source"}));
    }
  return table.empty() ? empty_state("Neither arm reports drafted tokens.") : table.finish();
}

Html runs_section(const CampaignView& view) {
  const Json& runs = list_at(view.comparison, {"runs"});
  if (runs.empty()) return empty_state("No run was made.");
  Html out;
  Table table("sortable stack", "Runs");
  table.head({{"Run", true}, {"Arm"}, {"Pair", true}, {"Directory"}, {"Counts"}});
  for (const Json& run : runs) {
    const Json& why = at(run, {"excluded"});
    table.row(why.is_null() ? Markup("") : Markup("watch"));
    const auto place = integer_at(run, {"index"}), pair = integer_at(run, {"pair"});
    table.number(place ? count(*place + 1) : "none", number_at(run, {"index"}));
    table.cell(text_at(run, {"arm"}) == "b" ? "B" : "A");
    table.number(pair ? count(*pair + 1) : "none", number_at(run, {"pair"}));
    const std::string name = text_at(run, {"run"});
    table.html(path_words(name.empty() ? "none" : "runs/" + name), "where");
    Html counts;
    counts << badge(why.is_null() ? "yes" : "no", why.is_null() ? Tone::kGood : Tone::kWatch);
    if (!why.is_null()) {
      counts << "<small>";
      counts.text(ellipsis(one_line(plain(why)), 300)) << "</small>";
    }
    table.html(counts, "prose");
  }
  out << table.finish();
  const Json& with =
      view.primary != nullptr ? at(*view.primary->json, {"with_excluded"}) : at(Json(), {"none"});
  if (with.is_object() && number_at(with, {"ratio"}))
    out << note("With the excluded runs the primary ratio would be " +
                ratio_words(number_at(with, {"ratio"})) + " instead of " +
                ratio_words(view.primary->ratio) + ".");
  return out;
}

Html definition_list() {
  Html out;
  out << "<dl class=\"definitions\">";
  for (const Definition& each : campaign_definitions()) {
    out << "<div><dt>";
    out.text(each.term) << "</dt><dd>";
    out.text(each.meaning) << "</dd></div>";
  }
  out << "</dl><h3>Metrics</h3>" << definitions_section();
  return out;
}

Html verify_words(const CampaignView& view) {
  Html out;
  out << "<p>Recompute every run, every ratio and this page from the raw records:</p><pre><code>";
  out.text("anvil verify " + base::shell_quote("runs/" + view.id))
      << "</code></pre><p>This page is a pure function of the campaign: the same runs give the "
         "same "
         "bytes.</p>";
  return out;
}

}  // namespace

std::string campaign_html(const CampaignView& view) {
  std::vector<Section> sections;
  sections.push_back({"difference", "What was compared", difference_section(view)});
  sections.push_back({"effects", "Effects", effects_section(view)});
  sections.push_back({"order", "Runs in their order", order_section(view)});
  sections.push_back({"curves", "Latency of both arms", curves_section(view)});
  sections.push_back({"failures", "Failures, both ways", failures_section(view)});
  sections.push_back({"acceptance", "Speculation", acceptance_section(view)});
  sections.push_back({"runs", "Runs and exclusions", runs_section(view)});
  sections.push_back({"definitions", "Definitions", definition_list()});
  sections.push_back({"verify", "How to verify", verify_words(view)});
  return document(view.title + ": " + view.verdict().word, "comparison of two arms", view.title,
                  view.id, top(view), sections);
}

}  // namespace anvil::report
