#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evidence/campaign.h"
#include "report/html.h"
#include "report/view.h"

// Two arms of a campaign side by side: what the formats say alike, and the parts of the page.
namespace anvil::report {

// One metric of one lane in comparison.json.
struct Effect {
  const Json* lane = nullptr;
  const Json* json = nullptr;
  std::string lane_id, metric, unit;  // metric as in comparison.json: "ttfo_ms.p50"
  std::string label;                  // "TTFO p50"
  std::string verdict, because;
  bool primary = false;
  std::optional<double> a, b, ratio, low, high;
  bool trusted = false;  // the interval reaches its level
  std::optional<double> noise_floor, detectable, p, p_holm;
  bool holm_rejects = false;
  int64_t pairs = 0;

  // kGood where B is better, kBad where it is worse, kPlain for equivalent and for metrics without
  // a better side, kWatch where nothing is resolved.
  Tone tone() const;
  bool resolved() const { return verdict != "not resolved"; }
  // "B is faster", "equivalent", "not resolved".
  std::string words() const;
  // A value of the metric with its unit.
  std::string value(const std::optional<double>& of) const;
};

// A campaign read for the page. Keeps references to both arguments.
struct CampaignView {
  CampaignView(const evidence::Campaign& campaign, const Json& comparison);
  CampaignView(const CampaignView&) = delete;
  CampaignView& operator=(const CampaignView&) = delete;

  const evidence::Campaign& campaign;
  const Json& comparison;
  std::vector<Effect> effects;  // by lane, the primary one where it stands
  const Effect* primary = nullptr;
  std::string title, id;
  std::string name_a, name_b;
  bool same = false;         // nothing differs between the arms
  bool exploratory = false;  // more may differ than one variable
  std::vector<std::string> variables;
  double level = 0.95;
  std::optional<double> margin;
  int64_t complete = 0, incomplete = 0, planned_pairs = 0, excluded = 0;

  Verdict verdict() const;
  // What stands on top: EXPLORATORY, A/A, too few pairs, excluded runs.
  struct Banner {
    Tone tone;
    std::string title, words;
  };
  std::vector<Banner> banners() const;
  // How the campaign was laid out and what it could have seen.
  std::vector<Fact> design() const;
};

// "0.763"
std::string ratio_words(const std::optional<double>& ratio);
// "0.751 to 0.781", with "?" where the pairs are too few to trust it.
std::string interval_words(const Effect& effect);
const std::vector<Definition>& campaign_definitions();

// The drawings; empty where there is nothing to draw.
Html forest_chart(const CampaignView& view);
// Values of one metric by the place of the run in the campaign.
Html run_order_chart(const Effect& effect);
// Latency of both arms by percentile, with the spread of their runs.
Html arm_curves(const CampaignView& view, const Json& lane);

std::string campaign_html(const CampaignView& view);
std::string campaign_markdown(const CampaignView& view);
std::string campaign_terminal(const CampaignView& view, bool colour, int columns);

}  // namespace anvil::report
