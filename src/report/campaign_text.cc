#include "base/strings.h"
#include "report/campaign.h"
#include "report/json_read.h"
#include "report/markdown.h"
#include "report/screen.h"
#include "report/text.h"

namespace anvil::report {

namespace {

std::string changed_words(const CampaignView& view) {
  std::string out;
  for (const Json& variable : list_at(view.campaign.frozen, {"diff", "changed"}))
    for (const Json& field : list_at(variable, {"fields"})) {
      const auto side = [&](const char* key) {
        const Json& value = at(field, {key});
        return value.is_null() ? std::string("not set") : ellipsis(one_line(plain(value)), 60);
      };
      out += (out.empty() ? "" : "; ") + text_at(variable, {"variable"}) + ": " +
             text_at(field, {"path"}) + " " + side("a") + " \xE2\x86\x92 " + side("b");
    }
  return out;
}

struct Failures {
  int64_t a = 0, b = 0, sent_a = 0, sent_b = 0;
  explicit Failures(const CampaignView& view) {
    for (const Json& lane : list_at(view.comparison, {"lanes"})) {
      const auto add = [&](const char* arm, int64_t& failed, int64_t& sent) {
        failed += integer_at(lane, {"arms", arm, "requests", "failed"}).value_or(0);
        sent += integer_at(lane, {"arms", arm, "requests", "total"}).value_or(0);
      };
      add("a", a, sent_a);
      add("b", b, sent_b);
    }
  }
  std::string words() const {
    return "A " + count(a) + " of " + count(sent_a) + " requests, B " + count(b) + " of " +
           count(sent_b);
  }
};

std::string run_words(const Json& run) {
  return "run " + std::to_string(integer_at(run, {"index"}).value_or(0) + 1) + " (" +
         (text_at(run, {"arm"}) == "b" ? "B" : "A") + ")";
}

}  // namespace

std::string campaign_markdown(const CampaignView& view) {
  const Verdict verdict = view.verdict();
  Markdown out;
  out.line("## " + safe_markdown(view.title) + ": " + safe_markdown(verdict.word));
  out.line("");
  for (const auto& banner : view.banners())
    out.line("> **" + banner.title + "** " + safe_markdown(banner.words, 300) + "\n>");
  out.line("");
  out.line(safe_markdown(verdict.sentence, 500));
  out.line("");
  out.head({"Lane", "Metric", "A", "B", "B / A", "95 % interval", "Noise floor", "Verdict"},
           "llrrrrrl");
  for (const Effect& effect : view.effects)
    out.row({safe_markdown(effect.lane_id),
             safe_markdown(effect.label) + (effect.primary ? " **(primary)**" : ""),
             safe_markdown(effect.value(effect.a)), safe_markdown(effect.value(effect.b)),
             ratio_words(effect.ratio), interval_words(effect), ratio_words(effect.noise_floor),
             safe_markdown(effect.words()) + (effect.holm_rejects ? " \\*" : "")});
  out.line("");
  out.line("\\* rejected after Holm's adjustment; ? too few pairs to trust the interval.");
  out.line("");
  out.head({"Design", ""}, "ll");
  for (const Fact& fact : view.design()) out.row({fact.label, safe_markdown(fact.value, 240)});
  const std::string changed = changed_words(view);
  out.row({"Differs", changed.empty() ? "nothing" : safe_markdown(changed, 400)});
  out.row({"Failed", safe_markdown(Failures(view).words())});
  const Json& excluded = list_at(view.comparison, {"excluded"});
  if (!excluded.empty()) {
    out.line("");
    out.head({"Excluded", "Why"}, "ll");
    for (const Json& run : excluded)
      out.row({run_words(run), safe_markdown(plain(at(run, {"excluded"})), 240)});
  }
  out.line("");
  out.line("Recompute everything: " +
           markdown_code("anvil verify " + base::shell_quote("runs/" + view.id)));
  return out.take();
}

std::string campaign_terminal(const CampaignView& view, bool colour, int columns) {
  Screen out(colour, columns);
  const Verdict verdict = view.verdict();
  out.line(one_line(view.title), Ink::kBold);
  out.line(one_line(view.id), Ink::kQuiet);
  out.blank();
  for (const auto& banner : view.banners())
    out.wrapped(banner.title + ": " + one_line(ellipsis(banner.words, 300)), 2,
                banner.tone == Tone::kPlain ? Ink::kBold : ink_of(banner.tone));
  out.wrapped(one_line(verdict.word) + ": " + one_line(ellipsis(verdict.sentence, 500)), 2,
              ink_of(verdict.tone));
  out.heading("Effects  ratio is B / A");
  const bool wide = out.columns() >= 76;
  out.line("  " + left("lane", 12) + left("metric", 20) + right("ratio", 8) +
               (wide ? right("interval", 18) : "") + "  verdict",
           Ink::kQuiet);
  for (const Effect& effect : view.effects)
    out.line("  " + left(one_line(effect.lane_id), 12) +
                 left(effect.label + (effect.primary ? " (p)" : ""), 20) +
                 right(ratio_words(effect.ratio), 8) +
                 (wide ? right(interval_words(effect), 18) : "") + "  " + effect.words() +
                 (effect.holm_rejects ? " *" : ""),
             effect.tone() == Tone::kWatch ? Ink::kQuiet : ink_of(effect.tone()));
  out.heading("Design");
  for (const Fact& fact : view.design())
    out.wrapped("  " + fact.label + ": " + one_line(ellipsis(fact.value, 300)), 4);
  const std::string changed = changed_words(view);
  out.wrapped("  Differs: " + (changed.empty() ? "nothing" : one_line(ellipsis(changed, 400))), 4);
  out.wrapped("  Failed: " + Failures(view).words(), 4);
  for (const Json& run : list_at(view.comparison, {"excluded"}))
    out.wrapped("  Excluded " + run_words(run) + ": " +
                    one_line(ellipsis(plain(at(run, {"excluded"})), 200)),
                4, Ink::kWatch);
  out.blank();
  out.wrapped("Verify: anvil verify " + one_line(base::shell_quote("runs/" + view.id)), 8,
              Ink::kQuiet);
  return out.take();
}

}  // namespace anvil::report
