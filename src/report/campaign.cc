#include "report/campaign.h"

#include <algorithm>

#include "base/strings.h"
#include "report/json_read.h"
#include "report/load_view.h"
#include "report/report.h"
#include "report/text.h"

namespace anvil::report {

namespace {

std::string arm_name(const Json& frozen, const char* arm) {
  const std::string name = text_at(frozen, {arm, "recipe"});
  return name.empty() ? "unnamed" : name;
}

Effect effect_of(const Json& lane, const Json& metric) {
  Effect out;
  out.lane = &lane;
  out.json = &metric;
  out.lane_id = text_at(lane, {"id"});
  out.metric = text_at(metric, {"metric"});
  out.label = metric_words(out.metric);
  out.unit = text_at(metric, {"unit"});
  out.verdict = text_at(metric, {"verdict"});
  if (out.verdict.empty()) out.verdict = "not resolved";
  out.because = text_at(metric, {"verdict_because"});
  out.primary = flag_at(metric, {"primary"}).value_or(false);
  out.a = number_at(metric, {"medians", "a"});
  out.b = number_at(metric, {"medians", "b"});
  out.ratio = number_at(metric, {"ratio"});
  out.low = number_at(metric, {"interval", "low"});
  out.high = number_at(metric, {"interval", "high"});
  if (!out.low || !out.high || !(*out.low > 0) || !(*out.high >= *out.low))
    out.low = out.high = std::nullopt;
  if (out.ratio && !(*out.ratio > 0)) out.ratio.reset();
  out.trusted = flag_at(metric, {"interval", "trusted"}).value_or(false);
  out.noise_floor = number_at(metric, {"noise_floor", "floor"});
  out.detectable = number_at(metric, {"minimum_detectable_ratio"});
  out.p = number_at(metric, {"signed_rank", "p"});
  out.p_holm = number_at(metric, {"p_holm"});
  out.holm_rejects = flag_at(metric, {"holm_rejects"}).value_or(false);
  out.pairs = integer_at(metric, {"pairs"}).value_or(0);
  return out;
}

std::string pairs_words(int64_t n) {
  return count(n) + (n == 1 ? " complete pair" : " complete pairs");
}

}  // namespace

Tone Effect::tone() const {
  if (verdict == "faster") return Tone::kGood;
  if (verdict == "slower") return Tone::kBad;
  return resolved() ? Tone::kPlain : Tone::kWatch;
}

std::string Effect::words() const {
  return verdict == "faster" || verdict == "slower" || verdict == "higher" || verdict == "lower"
             ? "B is " + verdict
             : one_line(verdict);
}

std::string Effect::value(const std::optional<double>& of) const {
  if (!of) return "none";
  if (unit == "ms") return milliseconds(*of);
  if (unit == "share") return fixed(*of * 100, 1) + " %";
  return figure(*of) + (unit.empty() || label.find(unit) != std::string::npos ? "" : " " + unit);
}

std::string ratio_words(const std::optional<double>& ratio) {
  return ratio ? fixed(*ratio, *ratio < 9.995 ? 3 : 1) : "none";
}

std::string interval_words(const Effect& effect) {
  if (!effect.low) return "none";
  return ratio_words(effect.low) + " to " + ratio_words(effect.high) + (effect.trusted ? "" : " ?");
}

CampaignView::CampaignView(const evidence::Campaign& from, const Json& compared)
    : campaign(from), comparison(compared) {
  const Json& frozen = campaign.frozen;
  id = text_at(frozen, {"id"});
  name_a = arm_name(frozen, "a");
  name_b = arm_name(frozen, "b");
  same = at(frozen, {"diff", "changed"}).is_array() && list_at(frozen, {"diff", "changed"}).empty();
  exploratory = flag_at(frozen, {"plan", "exploratory"}).value_or(false);
  for (const Json& each : list_at(frozen, {"diff", "changed"}))
    variables.push_back(text_at(each, {"variable"}));
  title = same ? name_a + " against itself" : name_b + " against " + name_a;
  level = number_at(comparison, {"level"}).value_or(0.95);
  margin = number_at(comparison, {"margin"});
  if (margin && !(*margin > 0 && *margin < 10)) margin.reset();
  complete = integer_at(comparison, {"pairs", "complete"}).value_or(0);
  incomplete = integer_at(comparison, {"pairs", "incomplete"}).value_or(0);
  planned_pairs = integer_at(frozen, {"plan", "pairs"}).value_or(0);
  excluded = static_cast<int64_t>(list_at(comparison, {"excluded"}).size());
  for (const Json& lane : list_at(comparison, {"lanes"}))
    for (const Json& metric : list_at(lane, {"metrics"}))
      if (metric.is_object()) effects.push_back(effect_of(lane, metric));
  for (const Effect& effect : effects)
    if (effect.primary && primary == nullptr) primary = &effect;
}

Verdict CampaignView::verdict() const {
  Verdict out;
  if (primary == nullptr) {
    out.word = "No primary endpoint";
    out.tone = Tone::kWatch;
    const std::string metric = text_at(comparison, {"primary", "metric"});
    out.sentence = metric.empty()
                       ? "None was declared before the first run, so nothing here decides."
                       : "The declared one, " + metric_words(metric) + " of lane " +
                             text_at(comparison, {"primary", "lane"}) + ", was not measured.";
    return out;
  }
  const Effect& effect = *primary;
  out.tone = effect.resolved() && (exploratory || !effect.trusted) ? Tone::kWatch : effect.tone();
  out.word = effect.words();
  if (out.word == "not resolved") out.word = "Not resolved";
  if (out.word == "equivalent") out.word = "Equivalent";
  out.sentence = effect.label + " of lane " + effect.lane_id + ": ";
  if (effect.ratio) {
    out.sentence += "B / A = " + ratio_words(effect.ratio);
    if (effect.low)
      out.sentence += ", " + fixed(level * 100, 0) + " % interval " + ratio_words(effect.low) +
                      " to " + ratio_words(effect.high);
    out.sentence += ", " + pairs_words(effect.pairs) + ". ";
  } else {
    out.sentence += pairs_words(effect.pairs) + ". ";
  }
  if (!effect.resolved())
    out.sentence +=
        "The measurement cannot tell the arms apart; that does not show that they are "
        "equal. ";
  if (!effect.because.empty()) {
    std::string why = effect.because;
    if (why[0] >= 'a' && why[0] <= 'z') why[0] = static_cast<char>(why[0] - 'a' + 'A');
    out.sentence += why + ".";
  }
  return out;
}

std::vector<CampaignView::Banner> CampaignView::banners() const {
  std::vector<Banner> out;
  if (exploratory)
    out.push_back({Tone::kBad, "EXPLORATORY",
                   variables.size() > 1
                       ? "The arms differ in " + std::to_string(variables.size()) +
                             " variables: no effect can be laid to one of them."
                       : "Declared before the first run: it finds questions, it answers none."});
  else if (variables.size() > 1)
    out.push_back({Tone::kBad, "MORE THAN ONE VARIABLE",
                   "The arms differ in " + std::to_string(variables.size()) +
                       " variables: no effect can be laid to one of them."});
  if (same)
    out.push_back({Tone::kPlain, "A/A",
                   "Both arms are the same: whatever differs here is noise, and a resolved "
                   "difference speaks against the measurement."});
  if (const std::string because = text_at(comparison, {"pairs", "because"}); !because.empty())
    out.push_back({Tone::kWatch, "FEW PAIRS", because + "."});
  const auto runs = static_cast<int64_t>(campaign.runs.size());
  const bool until_width = at(campaign.frozen, {"plan", "stop", "until_width"}).is_number();
  if (planned_pairs > 0 && runs < 2 * planned_pairs && !until_width)
    out.push_back({Tone::kWatch, "NOT ALL RUNS",
                   count(runs) + " of " + count(2 * planned_pairs) + " planned runs were made."});
  if (excluded > 0)
    out.push_back(
        {Tone::kWatch, "EXCLUDED",
         count(excluded) + " of " + count(runs) +
             (excluded == 1 ? " runs counts for nothing; it is listed with the reason."
                            : " runs count for nothing; they are listed with the reasons.")});
  return out;
}

std::vector<Fact> CampaignView::design() const {
  std::vector<Fact> out;
  const auto add = [&](std::string label, std::string value) {
    if (!value.empty()) out.push_back({std::move(label), std::move(value)});
  };
  const Json& frozen = campaign.frozen;
  add("A", name_a);
  add("B", name_b);
  add("Primary endpoint", primary != nullptr
                              ? primary->label + " of lane " + primary->lane_id
                              : metric_words(text_at(comparison, {"primary", "metric"})));
  add("Complete pairs", count(complete) + (planned_pairs > 0 ? " of " + count(planned_pairs) : "") +
                            (incomplete > 0 ? ", " + count(incomplete) + " incomplete" : ""));
  if (primary != nullptr && primary->detectable)
    add("Smallest ratio that these pairs find", ratio_words(primary->detectable) + " or " +
                                                    ratio_words(1 / *primary->detectable) +
                                                    ", with 80 % power");
  if (primary != nullptr && primary->noise_floor)
    add("A/A noise floor", ratio_words(primary->noise_floor));
  if (margin)
    add("Margin of equivalence",
        "ratio within 1 / " + ratio_words(1 + *margin) + " and " + ratio_words(1 + *margin));
  std::string order = text_at(frozen, {"plan", "order"});
  std::transform(order.begin(), order.end(), order.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  add("Order", ellipsis(order, 60));
  if (const auto width = number_at(frozen, {"plan", "stop", "until_width"}))
    add("Stop rule", "until the primary interval is narrower than " + fixed(*width * 100, 1) +
                         " % of the ratio, from " +
                         plain(at(frozen, {"plan", "stop", "not_before_pairs"})) + " pairs on");
  else if (planned_pairs > 0)
    add("Stop rule", count(planned_pairs) + " pairs, fixed before");
  if (const auto resamples = integer_at(comparison, {"resamples"}))
    add("Intervals", fixed(level * 100, 0) + " %, " + count(*resamples) +
                         " resamples of whole pairs, seed " + plain(at(comparison, {"seed"})));
  add("Suite", text_at(frozen, {"suite", "name"}));
  add("Started", text_at(frozen, {"anchor", "utc"}));
  const std::string version = text_at(frozen, {"tool", "version"});
  add("Anvil", version.empty()
                   ? ""
                   : version + ", build " + text_at(frozen, {"tool", "build"}).substr(0, 12));
  return out;
}

const std::vector<Definition>& campaign_definitions() {
  static const std::vector<Definition> kDefinitions = {
      {"ratio",
       "median over the runs of B divided by that of A; one value per run, because the "
       "requests of a run share its queue, cache and clocks"},
      {"interval",
       "block bootstrap over pairs of runs; none below 3 complete pairs, marked with ? "
       "below 6"},
      {"noise floor", "what two runs of one arm differ by: a ratio inside it is never resolved"},
      {"not resolved",
       "the interval spans 1, the ratio is inside the noise floor, or there are too "
       "few pairs; it does not mean equal"},
      {"equivalent",
       "the 90 % interval lies inside the margin that was declared before (two "
       "one-sided tests at 5 %)"},
      {"Holm", "p of the exact signed-rank test, adjusted for all metrics but the primary one"},
      {"smallest ratio found",
       "true ratio that a design of as many pairs with this spread resolves "
       "in 80 % of campaigns"},
      {"success-conditional", "over the requests that were answered"},
      {"intention to treat",
       "over every request that was sent: one that failed is slower than "
       "every answer, or has rate 0"},
      {"excluded",
       "a run that failed, or whose client was the bottleneck: kept, listed, and out of "
       "every figure but \"with excluded runs\""},
  };
  return kDefinitions;
}

Result<std::string> render_campaign_as(const evidence::Campaign& campaign, const Json& comparison,
                                       Format format, const TerminalOptions& terminal) {
  const CampaignView view(campaign, comparison);
  switch (format) {
    case Format::kHtml:
      return campaign_html(view);
    case Format::kMarkdown:
      return campaign_markdown(view);
    case Format::kTerminal:
      return campaign_terminal(view, terminal.colour, terminal.columns);
  }
  return fail(Kind::kInternal, Side::kInternal, "an unknown report format was asked for");
}

Result<std::string> render_campaign(const evidence::Campaign& campaign, const Json& comparison) {
  return render_campaign_as(campaign, comparison, Format::kHtml);
}

}  // namespace anvil::report
