#include <algorithm>
#include <cmath>
#include <map>

#include "report/campaign.h"
#include "report/json_read.h"
#include "report/load_view.h"
#include "report/nines.h"
#include "report/svg.h"
#include "report/text.h"

namespace anvil::report {

namespace {

struct RunPoint {
  int64_t index = 0, pair = 0;
  double value = 0;
  bool b = false, excluded = false;
  std::string run;
};

std::vector<RunPoint> points_of(const Effect& effect) {
  std::vector<RunPoint> out;
  for (const char* arm : {"a", "b"})
    for (const Json& each : list_at(*effect.json, {"values", arm})) {
      const auto value = number_at(each, {"value"});
      const auto index = integer_at(each, {"index"});
      if (!value || !std::isfinite(*value) || !index || *index < 0 || *index > 1'000'000) continue;
      out.push_back({*index, integer_at(each, {"pair"}).value_or(0), *value, arm[0] == 'b',
                     flag_at(each, {"excluded"}).value_or(false), text_at(each, {"run"})});
    }
  std::stable_sort(out.begin(), out.end(),
                   [](const RunPoint& l, const RunPoint& r) { return l.index < r.index; });
  return out;
}

std::string axis_label(const Effect& effect, double value, const std::vector<double>& ticks) {
  if (effect.unit == "ms") return svg::duration_label(value);
  if (effect.unit == "share")
    return svg::tick_label(value * 100,
                           [&] {
                             std::vector<double> out;
                             for (const double tick : ticks) out.push_back(tick * 100);
                             return out;
                           }()) +
           " %";
  return svg::tick_label(value, ticks);
}

}  // namespace

Html run_order_chart(const Effect& effect) {
  const auto points = points_of(effect);
  if (points.empty()) return {};
  constexpr double kWidth = 480, kHeight = 236, kLeft = 62, kRight = 466, kTop = 12, kBottom = 196;
  double low = points.front().value, high = low;
  int64_t last = 0;
  for (const RunPoint& point : points) {
    low = std::min(low, point.value), high = std::max(high, point.value);
    last = std::max(last, point.index);
  }
  const double pad = std::max((high - low) * 0.12, std::abs(high) * 1e-3);
  const svg::Range range =
      svg::nice_linear(std::max(low - pad, low < 0 ? low - pad : 0.0), high + pad, false, 5);
  const svg::Scale y = svg::Scale::linear(range, {kBottom, kTop});
  const svg::Scale x = svg::Scale::linear({0.4, static_cast<double>(last) + 1.6}, {kLeft, kRight});
  svg::Canvas canvas(
      kWidth, kHeight, "panel",
      effect.label + " of lane " + one_line(effect.lane_id) + " by the order of the runs");
  const auto ticks = svg::linear_ticks(range, 5);
  svg::axis_left(canvas, y, kLeft, kRight, ticks,
                 [&](double value) { return axis_label(effect, value, ticks); });
  std::vector<double> runs;
  for (int64_t i = 1; i <= last + 1; ++i) runs.push_back(static_cast<double>(i));
  if (runs.size() > 30) runs = svg::linear_ticks({1, static_cast<double>(last + 1)}, 10);
  svg::axis_bottom(canvas, x, kBottom, runs, [](double value) { return fixed(value, 0); });
  canvas.text((kLeft + kRight) / 2, kBottom + 33, "run", "tick", svg::Anchor::kMiddle);
  for (const auto& [median, line] :
       {std::pair<std::optional<double>, Markup>{effect.a, "median s1"}, {effect.b, "median s2"}})
    if (median && *median >= range.low && *median <= range.high)
      canvas.line(kLeft, y(*median), kRight, y(*median), line);
  const auto at = [&](const RunPoint& point) { return x(static_cast<double>(point.index) + 1); };
  std::map<int64_t, const RunPoint*> pairs;
  for (const RunPoint& point : points) {
    const auto [found, fresh] = pairs.emplace(point.pair, &point);
    if (!fresh && found->second->b != point.b)
      canvas.line(at(*found->second), y(found->second->value), at(point), y(point.value), "pair");
  }
  for (const RunPoint& point : points)
    canvas.circle(at(point), y(point.value), 4.5,
                  point.excluded ? point.b ? Markup("dot open s2") : Markup("dot open s1")
                  : point.b ? Markup("dot s2")
                                 : Markup("dot s1"),
                  "run " + std::to_string(point.index + 1) + ", " + (point.b ? "B" : "A") +
                      ", pair " + std::to_string(point.pair + 1) +
                      (point.excluded ? ", excluded" : "") + "\n" + effect.value(point.value) +
                      "\n" + one_line(point.run));
  Html out;
  out << "<figure><figcaption>";
  out.text(effect.label + ", lane " + one_line(effect.lane_id))
      << "</figcaption>" << canvas.finish() << "</figure>";
  return out;
}

namespace {

struct ArmCurve {
  std::vector<svg::Point> points;
  std::vector<std::pair<svg::Point, svg::Point>> band;  // lowest and highest of the runs
  int64_t n = 0;
};

// The first value at or behind a position, as the empirical distribution reads.
std::optional<double> value_at(const std::vector<svg::Point>& curve, double position) {
  const auto found =
      std::lower_bound(curve.begin(), curve.end(), position - 1e-9,
                       [](const svg::Point& point, double at) { return point.first < at; });
  return found == curve.end() ? std::nullopt : std::optional(found->second);
}

ArmCurve arm_curve(const CampaignView& view, const Json& lane, const char* arm, const char* key) {
  ArmCurve out;
  out.points = Nines::points(at(lane, {"arms", arm, "curves", key}));
  const std::string id = text_at(lane, {"id"});
  std::vector<std::vector<svg::Point>> runs;
  for (const evidence::RunForComparison& run : view.campaign.runs) {
    if (run.arm != arm || run.excluded) continue;
    for (const Json& each : list_at(run.results, {"lanes"})) {
      if (text_at(each, {"id"}) != id) continue;
      out.n += std::max<int64_t>(integer_at(each, {key, "n"}).value_or(0), 0);
      if (auto points = Nines::points(at(each, {"curves", key})); points.size() > 1)
        runs.push_back(std::move(points));
    }
  }
  if (runs.size() < 2) return out;
  for (const svg::Point& point : out.points) {
    double low = 0, high = 0;
    size_t seen = 0;
    for (const auto& run : runs)
      if (const auto value = value_at(run, point.first)) {
        low = seen ? std::min(low, *value) : *value;
        high = seen ? std::max(high, *value) : *value;
        ++seen;
      }
    // Behind the last value of one run the band would be that of the others.
    if (seen == runs.size()) out.band.push_back({{point.first, low}, {point.first, high}});
  }
  return out;
}

void draw_band(svg::Canvas& canvas, const svg::Scale& x, const svg::Scale& y, const ArmCurve& curve,
               Markup classes) {
  if (curve.band.size() < 2) return;
  const auto pixel = [&](const svg::Point& point) {
    return svg::Point{x(point.first), y(std::max(point.second, y.data().low))};
  };
  std::vector<svg::Point> outline;
  for (const auto& [low, high] : curve.band) outline.push_back(pixel(low));
  for (auto at = curve.band.rbegin(); at != curve.band.rend(); ++at)
    outline.push_back(pixel(at->second));
  canvas.path(outline, classes);
}

}  // namespace

Html arm_curves(const CampaignView& view, const Json& lane) {
  constexpr double kWidth = 400, kHeight = 214, kLeft = 52, kRight = 388, kTop = 10, kBottom = 184;
  Html panels;
  for (const char* key : {"ttfo_ms", "e2e_ms", "tpot_ms", "chunk_gap_ms"}) {
    const ArmCurve a = arm_curve(view, lane, "a", key), b = arm_curve(view, lane, "b", key);
    if (a.points.size() < 2 && b.points.size() < 2) continue;
    double far = 1;
    std::vector<std::vector<svg::Point>> all = {a.points, b.points};
    for (const ArmCurve* arm : {&a, &b}) {
      if (!arm->points.empty()) far = std::max(far, arm->points.back().first);
      for (const auto& [low, high] : arm->band) all.push_back({low, high});
    }
    const svg::Scale x = svg::Scale::linear({0, far + 0.05}, {kLeft, kRight});
    const svg::Scale y = Nines::values(all, {kBottom, kTop});
    const std::string name = metric_words(key);
    svg::Canvas canvas(
        kWidth, kHeight, "panel",
        name + " of both arms by percentile, lane " + one_line(text_at(lane, {"id"})));
    Nines::frame(canvas, x, y);
    draw_band(canvas, x, y, a, "spread s1");
    draw_band(canvas, x, y, b, "spread s2");
    Nines::draw(canvas, x, y, a.points, Nines::certified(a.n), "curve s1", "curve s1 beyond");
    Nines::draw(canvas, x, y, b.points, Nines::certified(b.n), "curve s2", "curve s2 beyond");
    panels << "<figure><figcaption>";
    panels.text(name) << "</figcaption>" << canvas.finish() << "</figure>";
  }
  if (panels.empty()) return {};
  Html out;
  out << "<div class=\"panels two\">" << panels << "</div>";
  return out;
}

}  // namespace anvil::report
