#include <algorithm>
#include <cmath>

#include "report/campaign.h"
#include "report/svg.h"
#include "report/text.h"

namespace anvil::report {

namespace {

constexpr double kWidth = 1000, kLabel = 12, kLeft = 236, kRight = 640, kRatio = 664,
                 kVerdict = 826;
constexpr double kTop = 26, kRow = 23, kLaneGap = 30;

// Far effects are drawn at the edge; their numbers stand beside them.
constexpr double kMostRatio = 8;

std::vector<const Effect*> drawn(const CampaignView& view) {
  std::vector<const Effect*> out;
  for (const Effect& effect : view.effects)
    if (effect.ratio) out.push_back(&effect);
  return out;
}

// The same distance to both sides of 1, so that the eye does not take the middle for no effect.
double reach_of(const CampaignView& view, const std::vector<const Effect*>& effects) {
  double reach = 1.04;
  const auto see = [&](const std::optional<double>& ratio) {
    if (ratio && *ratio > 0) reach = std::max(reach, std::max(*ratio, 1 / *ratio));
  };
  for (const Effect* effect : effects) {
    see(effect->ratio);
    see(effect->low);
    see(effect->high);
    see(effect->noise_floor);
  }
  if (view.margin) see(1 + *view.margin);
  return std::min(reach * 1.03, kMostRatio);
}

std::vector<double> ratio_ticks(const svg::Range& range) {
  return range.high > 2.5 ? svg::log_ticks(range, 9) : svg::linear_ticks(range, 7);
}

struct Colours {
  Markup line, dot;
};
Colours colours_of(const Effect& effect) {
  switch (effect.tone()) {
    case Tone::kGood:
      return {"effect good", "effect-dot good"};
    case Tone::kBad:
      return {"effect bad", "effect-dot bad"};
    case Tone::kPlain:
      return {"effect plain", "effect-dot plain"};
    case Tone::kWatch:
      break;
  }
  return {"effect open", "effect-dot open"};
}

std::string tip_of(const Effect& effect) {
  std::string out = effect.label + ", lane " + one_line(effect.lane_id) + "\nA " +
                    effect.value(effect.a) + ", B " + effect.value(effect.b) + "\nB / A " +
                    ratio_words(effect.ratio);
  if (effect.low) out += ", " + interval_words(effect);
  if (effect.p_holm) out += "\np after Holm " + figure(*effect.p_holm);
  return out + "\n" + effect.words() +
         (effect.because.empty() ? "" : ": " + one_line(effect.because));
}

void row(svg::Canvas& canvas, const svg::Scale& x, const Effect& effect, double y) {
  const auto place = [&](double ratio) {
    return x(std::clamp(ratio, x.data().low, x.data().high));
  };
  const double middle = y + kRow / 2;
  if (effect.noise_floor && *effect.noise_floor > 1)
    canvas.rect(place(1 / *effect.noise_floor), y + 3,
                place(*effect.noise_floor) - place(1 / *effect.noise_floor), kRow - 6, "noise-band",
                "noise floor " + ratio_words(effect.noise_floor));
  const Colours colours = colours_of(effect);
  if (effect.low) {
    const double from = place(*effect.low), to = place(*effect.high);
    canvas.line(from, middle, to, middle, colours.line);
    canvas.line(from, middle - 4, from, middle + 4, colours.line);
    canvas.line(to, middle - 4, to, middle + 4, colours.line);
  }
  canvas.circle(place(*effect.ratio), middle, effect.primary ? 5.5 : 4, colours.dot,
                tip_of(effect));
  canvas.text(kLabel, middle + 4, effect.label + (effect.primary ? ", primary" : ""),
              effect.primary ? Markup("band strong") : Markup("band"));
  canvas.text(kRatio, middle + 4,
              ratio_words(effect.ratio) +
                  (effect.low ? "  (" + interval_words(effect) + ")" : ", no interval"),
              "tick");
  canvas.text(kVerdict, middle + 4, effect.words() + (effect.holm_rejects ? " *" : ""),
              effect.primary ? Markup("band strong") : Markup("band"));
}

}  // namespace

Html forest_chart(const CampaignView& view) {
  const auto effects = drawn(view);
  if (effects.empty()) return {};
  const double reach = reach_of(view, effects);
  const svg::Range range{1 / reach, reach};
  const svg::Scale x = svg::Scale::logarithmic(range, {kLeft, kRight});
  size_t lanes = 0;
  for (size_t i = 0; i < effects.size(); ++i)
    lanes += i == 0 || effects[i]->lane != effects[i - 1]->lane;
  const double bottom =
      kTop + static_cast<double>(lanes) * kLaneGap + static_cast<double>(effects.size()) * kRow;
  svg::Canvas canvas(kWidth, bottom + 40, "wide",
                     "Ratio of B to A with its interval, " + std::to_string(effects.size()) +
                         " metrics in " + std::to_string(lanes) +
                         (lanes == 1 ? " lane" : " lanes"));
  if (view.margin) {
    const double from = x(1 / (1 + *view.margin)), to = x(1 + *view.margin);
    canvas.rect(from, kTop, to - from, bottom - kTop, "region",
                "margin of equivalence: within " + ratio_words(1 + *view.margin));
    canvas.line(from, kTop, from, bottom, "region-edge");
    canvas.line(to, kTop, to, bottom, "region-edge");
  }
  const auto ticks = ratio_ticks(range);
  for (const double tick : ticks) canvas.line(x(tick), kTop, x(tick), bottom, "grid");
  canvas.line(x(1), kTop, x(1), bottom, "axis");
  canvas.text(x(1) - 8, kTop - 8, "B smaller", "tick", svg::Anchor::kEnd);
  canvas.text(x(1) + 8, kTop - 8, "B larger", "tick");
  canvas.text(kRatio, kTop - 8, "B / A (interval)", "tick");
  canvas.text(kVerdict, kTop - 8, "verdict", "tick");
  double y = kTop;
  for (size_t i = 0; i < effects.size(); ++i) {
    if (i == 0 || effects[i]->lane != effects[i - 1]->lane) {
      canvas.text(0, y + kLaneGap - 9, ellipsis(one_line(effects[i]->lane_id), 32), "band strong");
      y += kLaneGap;
    }
    row(canvas, x, *effects[i], y);
    y += kRow;
  }
  svg::axis_bottom(canvas, x, bottom, ticks,
                   [&](double value) { return svg::tick_label(value, ticks); });
  canvas.text((kLeft + kRight) / 2, bottom + 33, "B / A, logarithmic", "tick",
              svg::Anchor::kMiddle);
  Html out;
  out << "<ul class=\"legend\"><li><i class=\"k dot-good\"></i>B better</li><li><i class=\"k "
         "dot-bad\"></i>B worse</li><li><i class=\"k dot-plain\"></i>equivalent, or no better "
         "side</li><li><i class=\"k hollow\"></i>not resolved</li><li><i class=\"k "
         "noise\"></i>noise floor</li>";
  if (view.margin) out << "<li><i class=\"k within\"></i>margin of equivalence</li>";
  out << "<li>* rejected after Holm's adjustment</li></ul><div class=\"scroll\" role=\"region\" "
         "tabindex=\"0\" aria-label=\"Effects\">"
      << canvas.finish() << "</div>";
  return out;
}

}  // namespace anvil::report
