#include <algorithm>
#include <cmath>

#include "report/charts.h"
#include "report/json_read.h"
#include "report/svg.h"
#include "report/text.h"
#include "report/view.h"

namespace anvil::report {

namespace {

constexpr double kWidth = 320, kHeight = 200, kLeft = 50, kRight = 310, kTop = 12, kBottom = 166;

constexpr double kFound = 0.75;  // from this grade on derive() takes a fact as returned

struct Rung {
  const Json* json = nullptr;
  double target = 0;
};

std::vector<Rung> rungs_of(const Facts& facts, const std::string& state) {
  std::vector<Rung> out;
  for (const Json& rung : list_at(facts.results, {"ladder", "rungs"})) {
    const auto target = number_at(rung, {"target"});
    if (target && *target > 0 && text_at(rung, {"state"}) == state) out.push_back({&rung, *target});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Rung& a, const Rung& b) { return a.target < b.target; });
  return out;
}

std::string tokens_label(double tokens) {
  if (tokens >= 1024 && std::fmod(tokens, 1024) == 0) return fixed(tokens / 1024, 0) + "Ki";
  if (tokens >= 10000) return figure(tokens / 1000) + "k";
  return fixed(tokens, 0);
}

struct Axes {
  svg::Range tokens, values;
  bool logarithmic = false;
};

// Both states share the axes, so that their panels can be compared.
Axes axes_of(const std::vector<Rung>& rungs, const char* metric) {
  Axes out;
  double low = 0, high = 0, first = 0, last = 0;
  bool any = false;
  for (const Rung& rung : rungs) {
    first = first == 0 ? rung.target : std::min(first, rung.target);
    last = std::max(last, rung.target);
    const auto value = number_at(*rung.json, {metric});
    if (!value || *value <= 0) continue;
    low = any ? std::min(low, *value) : *value;
    high = any ? std::max(high, *value) : *value;
    any = true;
  }
  out.tokens =
      first == last ? svg::Range{first / 2, last * 2} : svg::Range{first / 1.15, last * 1.15};
  out.logarithmic = any && high / low > 12;
  out.values = !any              ? svg::Range{0, 1}
               : out.logarithmic ? svg::nice_log(low, high)
                                 : svg::nice_linear(0, high, true, 4);
  return out;
}

void token_axis(svg::Canvas& canvas, const svg::Scale& x, const std::vector<Rung>& rungs,
                double bottom) {
  std::vector<double> ticks;
  for (const Rung& rung : rungs)
    if (ticks.empty() || ticks.back() != rung.target) ticks.push_back(rung.target);
  svg::axis_bottom(canvas, x, bottom, ticks, tokens_label);
  canvas.text((kLeft + kRight) / 2, bottom + 29, "prompt tokens", "tick", svg::Anchor::kMiddle);
}

Html metric_panel(const std::vector<Rung>& rungs, const Axes& axes, const char* metric,
                  const std::string& title, bool latency) {
  const svg::Scale x = svg::Scale::logarithmic(axes.tokens, {kLeft, kRight});
  const svg::Scale y = axes.logarithmic ? svg::Scale::logarithmic(axes.values, {kBottom, kTop})
                                        : svg::Scale::linear(axes.values, {kBottom, kTop});
  svg::Canvas canvas(kWidth, kHeight, "panel", title + " over context length");
  const auto ticks =
      axes.logarithmic ? svg::log_ticks(axes.values, 6) : svg::linear_ticks(axes.values, 4);
  svg::axis_left(canvas, y, kLeft, kRight, ticks, [&](double value) {
    return latency ? svg::duration_label(value) : svg::tick_label(value, ticks);
  });
  token_axis(canvas, x, rungs, kBottom);
  std::vector<svg::Point> line;
  for (const Rung& rung : rungs)
    if (const auto value = number_at(*rung.json, {metric}))
      line.emplace_back(x(rung.target), y(*value));
  canvas.path(line, "curve s1");
  bool any = false;
  for (const Rung& rung : rungs) {
    const auto value = number_at(*rung.json, {metric});
    const std::string tokens = count(static_cast<int64_t>(rung.target)) + " tokens: ";
    if (value)
      canvas.circle(x(rung.target), y(*value), 3.6, "dot s1",
                    tokens + (latency ? milliseconds(*value) : figure(*value) + " tok/s"));
    else
      canvas.circle(x(rung.target), kBottom, 4, "dot refused",
                    tokens + "refused, " + one_line(text_at(*rung.json, {"refused"})));
    any = any || value.has_value();
  }
  if (!any)
    canvas.text((kLeft + kRight) / 2, (kTop + kBottom) / 2, "not measured", "empty",
                svg::Anchor::kMiddle);
  return canvas.finish();
}

// One cell per rung and depth, its grade inside.
Html needle_panel(const std::vector<Rung>& rungs, const std::string& title) {
  std::vector<double> depths;
  for (const Rung& rung : rungs)
    for (const Json& needle : list_at(*rung.json, {"needles"}))
      if (const auto depth = number_at(needle, {"depth"}))
        if (std::find(depths.begin(), depths.end(), *depth) == depths.end())
          depths.push_back(*depth);
  std::sort(depths.begin(), depths.end());
  svg::Canvas canvas(kWidth, kHeight, "panel", title + " by context length and depth");
  if (depths.empty() || rungs.empty()) {
    canvas.text(kWidth / 2, kHeight / 2, "not measured", "empty", svg::Anchor::kMiddle);
    return canvas.finish();
  }
  const double cell_width = (kRight - kLeft) / static_cast<double>(rungs.size());
  const double cell_height = std::min((kBottom - kTop) / static_cast<double>(depths.size()), 46.0);
  const double bottom = kTop + cell_height * static_cast<double>(depths.size());
  for (size_t row = 0; row < depths.size(); ++row) {
    const double y = kTop + static_cast<double>(row) * cell_height;
    canvas.text(kLeft - 6, y + cell_height / 2 + 4, "at " + fixed(depths[row] * 100, 0) + " %",
                "tick", svg::Anchor::kEnd);
    for (size_t column = 0; column < rungs.size(); ++column) {
      const double x = kLeft + static_cast<double>(column) * cell_width;
      std::optional<double> grade;
      for (const Json& needle : list_at(*rungs[column].json, {"needles"}))
        if (number_at(needle, {"depth"}) == depths[row]) grade = number_at(needle, {"grade"});
      const Markup tone = !grade             ? Markup("needle none")
                          : *grade >= kFound ? Markup("needle found")
                          : *grade > 0       ? Markup("needle part")
                                             : Markup("needle lost");
      canvas.rect(x + 1, y + 1, cell_width - 2, cell_height - 2, tone,
                  count(static_cast<int64_t>(rungs[column].target)) + " tokens, depth " +
                      fixed(depths[row] * 100, 0) +
                      " %: " + (grade ? "grade " + figure(*grade) : "not measured"));
      if (cell_width > 24 && grade)
        canvas.text(x + cell_width / 2, y + cell_height / 2 + 4,
                    *grade >= 0.999 ? "1"
                    : *grade <= 0   ? "0"
                                    : fixed(*grade, 2),
                    "on-cell", svg::Anchor::kMiddle);
    }
  }
  double free_from = 0;
  for (size_t column = 0; column < rungs.size(); ++column) {
    const std::string label = tokens_label(rungs[column].target);
    const double x = kLeft + (static_cast<double>(column) + 0.5) * cell_width,
                 half = svg::label_width(label) / 2;
    if (x - half < free_from) continue;
    canvas.text(x, bottom + 16, label, "tick", svg::Anchor::kMiddle);
    free_from = x + half + 4;
  }
  canvas.text((kLeft + kRight) / 2, bottom + 29, "prompt tokens", "tick", svg::Anchor::kMiddle);
  return canvas.finish();
}

void figure_of_panel(Html& out, const std::string& caption, const Html& drawing) {
  out << "<figure><figcaption>";
  out.text(caption) << "</figcaption>" << drawing << "</figure>";
}

}  // namespace

Html ladder_charts(const Facts& facts) {
  std::vector<std::string> states;
  for (const Json& rung : list_at(facts.results, {"ladder", "rungs"})) {
    const std::string state = text_at(rung, {"state"});
    if (std::find(states.begin(), states.end(), state) == states.end()) states.push_back(state);
  }
  std::vector<Rung> all;
  for (const auto& state : states) {
    const auto some = rungs_of(facts, state);
    all.insert(all.end(), some.begin(), some.end());
  }
  if (all.empty()) return {};
  const Axes ttfo = axes_of(all, "ttfo_ms"), prefill = axes_of(all, "effective_prefill_tok_s");
  Html out;
  bool refused = false;
  for (const Rung& rung : all) refused = refused || !number_at(*rung.json, {"ttfo_ms"});
  if (refused)
    out << "<ul class=\"legend\"><li><i class=\"k ring\"></i>refused rung, its times do not "
           "count</li></ul>";
  out << "<div class=\"panels three\">";
  for (const auto& state : states) {
    const auto rungs = rungs_of(facts, state);
    const std::string words = state_words(one_line(state));
    figure_of_panel(out, "TTFO, " + words,
                    metric_panel(rungs, ttfo, "ttfo_ms", "TTFO, " + words, true));
    figure_of_panel(out, "Effective prefill, tok/s, " + words,
                    metric_panel(rungs, prefill, "effective_prefill_tok_s",
                                 "Effective prefill, " + words, false));
    figure_of_panel(out, "Needles found, " + words, needle_panel(rungs, "Needle grades, " + words));
  }
  out << "</div>";
  return out;
}

}  // namespace anvil::report
