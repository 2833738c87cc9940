#include <algorithm>
#include <cmath>

#include "report/charts.h"
#include "report/json_read.h"
#include "report/nines.h"
#include "report/svg.h"
#include "report/text.h"
#include "report/view.h"

namespace anvil::report {

double Nines::axis(double share) {
  return -std::log10(std::max(1 - share, 1e-9));
}

std::vector<svg::Point> Nines::points(const Json& curve) {
  std::vector<svg::Point> out;
  if (!curve.is_array()) return out;
  double before = 0;
  for (const Json& pair : curve) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() || !pair[1].is_number())
      continue;
    const double share = std::clamp(pair[0].get<double>(), 0.0, 1.0);
    out.emplace_back(axis(share < 1 ? share : (before + 1) / 2), pair[1].get<double>());
    before = share;
  }
  return out;
}

double Nines::certified(int64_t n) {
  constexpr std::pair<int64_t, double> kFloors[] = {
      {11, 0.5}, {64, 0.9}, {130, 0.95}, {662, 0.99}, {6636, 0.999}};
  double out = 0;
  for (const auto& [floor, share] : kFloors)
    if (n >= floor) out = axis(share);
  return out;
}

void Nines::frame(svg::Canvas& canvas, const svg::Scale& x, const svg::Scale& y) {
  const auto ticks =
      y.is_logarithmic() ? svg::log_ticks(y.data(), 7) : svg::linear_ticks(y.data(), 5);
  svg::axis_left(canvas, y, x.pixels().low, x.pixels().high, ticks, svg::duration_label);
  const double bottom = y.pixels().low, top = y.pixels().high;
  std::vector<double> marks;
  for (const double share : {0.5, 0.9, 0.99, 0.999, 0.9999})
    if (axis(share) <= x.data().high + 1e-9) marks.push_back(axis(share));
  for (const double mark : marks) canvas.line(x(mark), top, x(mark), bottom, "grid");
  svg::axis_bottom(canvas, x, bottom, marks, [](double at) {
    const double share = 100 * (1 - std::pow(10, -at));
    return "p" + (share > 99.95  ? fixed(share, 2)
                  : share > 99.5 ? fixed(share, 1)
                                 : fixed(share, 0));
  });
}

svg::Scale Nines::values(const std::vector<std::vector<svg::Point>>& curves, svg::Range pixels) {
  double low = 0, high = 0;
  for (const auto& curve : curves)
    for (const auto& [at, value] : curve) high = std::max(high, value);
  if (!(high > 0)) return svg::Scale::linear({0, 1}, pixels);
  // Events of one segment are no time apart; on a logarithmic axis that is the lower edge.
  const double least = high * 1e-4;
  low = high;
  for (const auto& curve : curves)
    for (const auto& [at, value] : curve)
      if (value >= least) low = std::min(low, value);
  if (high / low > 3) return svg::Scale::logarithmic(svg::nice_log(low, high), pixels);
  return svg::Scale::linear(svg::nice_linear(low, high, false, 5), pixels);
}

namespace {
struct Series {
  const char* key;
  const char* name;
  Markup line, beyond, legend;
};
constexpr Series kSeries[] = {
    {"ttfo_ms", "TTFO", "curve s1", "curve s1 beyond", "k l1"},
    {"e2e_ms", "E2E", "curve s2", "curve s2 beyond", "k l2"},
    {"tpot_ms", "TPOT", "curve s3", "curve s3 beyond", "k l3"},
    {"chunk_gap_ms", "chunk gap", "curve s4", "curve s4 beyond", "k l4"},
};
}  // namespace

void Nines::draw(svg::Canvas& canvas, const svg::Scale& x, const svg::Scale& y,
                 const std::vector<svg::Point>& points, double certified, Markup line,
                 Markup beyond) {
  std::vector<svg::Point> sure, rest;
  for (const auto& [at, value] : points) {
    const svg::Point pixel{x(at), y(std::max(value, y.data().low))};
    if (at <= certified + 1e-9)
      sure.push_back(pixel);
    else
      rest.push_back(pixel);
  }
  if (!sure.empty()) rest.insert(rest.begin(), sure.back());
  canvas.path(rest, beyond);
  canvas.path(sure, line);
}

Html nines_chart(const Json& lane) {
  std::vector<std::vector<svg::Point>> curves;
  std::vector<const Series*> shown;
  std::vector<double> certified;
  double far = 1;
  for (const Series& series : kSeries) {
    const int64_t n = integer_at(lane, {series.key, "n"}).value_or(0);
    auto points = Nines::points(at(lane, {"curves", series.key}));
    if (points.size() < 2) continue;
    far = std::max(far, points.back().first);
    curves.push_back(std::move(points));
    shown.push_back(&series);
    certified.push_back(Nines::certified(n));
  }
  if (curves.empty()) return {};
  constexpr double kWidth = 400, kHeight = 214, kLeft = 52, kRight = 388, kTop = 10, kBottom = 184;
  const svg::Scale x = svg::Scale::linear({0, far + 0.05}, {kLeft, kRight});
  const svg::Scale y = Nines::values(curves, {kBottom, kTop});
  svg::Canvas canvas(
      kWidth, kHeight, "panel",
      "Latency by percentile of lane " + one_line(text_at(lane, {"id"})) + ", on an axis of nines");
  Nines::frame(canvas, x, y);
  for (size_t i = 0; i < curves.size(); ++i)
    Nines::draw(canvas, x, y, curves[i], certified[i], shown[i]->line, shown[i]->beyond);
  Html out;
  out << "<ul class=\"legend\">";
  for (const Series* series : shown) {
    out << "<li><i";
    out.attribute("class", series->legend.text) << "></i>";
    out.text(series->name) << "</li>";
  }
  out << "</ul>" << canvas.finish();
  return out;
}

}  // namespace anvil::report
