#include <algorithm>
#include <cmath>

#include "report/charts.h"
#include "report/json_read.h"
#include "report/svg.h"
#include "report/text.h"
#include "report/view.h"

namespace anvil::report {

namespace {

struct Curve {
  std::string name;
  Markup line, key;
  std::vector<double> values;
};

// TTFV is drawn only where it says something that TTFO does not.
std::vector<Curve> curves_of(const std::vector<const Request*>& requests) {
  Curve first{"TTFO", "curve s1", "k l1", {}}, visible{"TTFV", "curve s3", "k l3", {}},
      all{"E2E", "curve s2", "k l2", {}};
  bool differs = false;
  for (const Request* request : requests) {
    if (!request->ok()) continue;
    const auto ttfo = request->ttfo_ms;
    const auto ttfv = request->ttfv_ms;
    const auto e2e = request->e2e_ms;
    if (ttfo) first.values.push_back(*ttfo);
    if (ttfv) visible.values.push_back(*ttfv);
    if (e2e) all.values.push_back(*e2e);
    differs = differs || (ttfo && ttfv && *ttfv > *ttfo * 1.02);
  }
  std::vector<Curve> out;
  for (Curve* curve : {&first, &visible, &all})
    if (!curve->values.empty() && (curve != &visible || differs)) out.push_back(std::move(*curve));
  return out;
}

std::string percent(double share) {
  return fixed(share * 100, 0) + " %";
}

}  // namespace

Html latency_chart(const Facts& facts, const Json& lane) {
  const std::string id = text_at(lane, {"id"});
  const auto requests = lane_requests(facts, id);
  const auto curves = curves_of(requests);
  if (curves.empty()) return {};
  double low = curves.front().values.front(), high = low;
  size_t ok = 0;
  for (const Curve& curve : curves)
    for (const double value : curve.values)
      low = std::min(low, value), high = std::max(high, value);
  for (const Request* request : requests) ok += request->ok() ? 1 : 0;
  low = std::max(low, 1e-3);
  high = std::max(high, low);
  const bool logarithmic = high / low > 4;

  constexpr double kWidth = 400, kHeight = 214, kLeft = 46, kRight = 378, kTop = 10, kBottom = 184;
  const svg::Range range =
      logarithmic ? svg::nice_log(low, high) : svg::nice_linear(low, high, false, 5);
  const svg::Scale x = logarithmic ? svg::Scale::logarithmic(range, {kLeft, kRight})
                                   : svg::Scale::linear(range, {kLeft, kRight});
  const svg::Scale y = svg::Scale::linear({0, 1}, {kBottom, kTop});
  svg::Canvas canvas(kWidth, kHeight, "panel",
                     "Latency distribution of lane " + one_line(id) + " over " +
                         std::to_string(requests.size()) + " requests, " + milliseconds(low) +
                         " to " + milliseconds(high));
  svg::axis_left(canvas, y, kLeft, kRight, {0, 0.25, 0.5, 0.75, 1}, percent);
  const auto ticks = logarithmic ? svg::log_ticks(range, 7) : svg::linear_ticks(range, 4);
  for (const double tick : ticks) canvas.line(x(tick), kTop, x(tick), kBottom, "grid");
  svg::axis_bottom(canvas, x, kBottom, ticks, svg::duration_label);
  for (const Curve& curve : curves) {
    const auto points = svg::ecdf(curve.values, requests.size(), 240);
    std::vector<svg::Point> pixels = {{x(points.front().first), y(0)}};
    for (const auto& [value, share] : points) pixels.emplace_back(x(value), y(share));
    pixels.emplace_back(kRight, pixels.back().second);
    canvas.steps(pixels, curve.line);
    if (points.size() > 30) continue;
    for (const auto& [value, share] : points)
      canvas.circle(
          x(value), y(share), 2, curve.line,
          curve.name + " " + milliseconds(value) + ": " + percent(share) + " of requests");
  }
  Html out;
  out << "<ul class=\"legend\">";
  for (const Curve& curve : curves) {
    out << "<li><i";
    out.attribute("class", curve.key.text) << "></i>";
    out.text(curve.name) << "</li>";
  }
  out << "</ul>" << canvas.finish();
  if (ok < requests.size()) {
    out << "<p class=\"note\">";
    out.text(std::to_string(requests.size() - ok) + " of " + std::to_string(requests.size()) +
             " requests failed; they stay in the denominator, so the curves end below 100 %.")
        << "</p>";
  }
  return out;
}

}  // namespace anvil::report
