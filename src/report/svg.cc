#include "report/svg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "report/text.h"

namespace anvil::report::svg {

namespace {
// "1.50" -> "1.5", "2.00" -> "2".
std::string without_tail(std::string digits) {
  if (digits.find('.') == std::string::npos) return digits;
  while (digits.back() == '0') digits.pop_back();
  if (digits.back() == '.') digits.pop_back();
  return digits;
}
}  // namespace

std::string num(double value) {
  return std::isfinite(value) ? without_tail(fixed(value, 2)) : "0";
}

double Scale::operator()(double value) const {
  double low = data_.low, high = data_.high;
  if (logarithmic_) {
    value = std::log10(std::max(value, low));
    low = std::log10(low);
    high = std::log10(high);
  }
  if (!(high > low)) return (pixels_.low + pixels_.high) / 2;
  return pixels_.low + (value - low) / (high - low) * (pixels_.high - pixels_.low);
}

namespace {

double nice_step(double extent, int wanted) {
  const double raw = extent / std::max(wanted, 1);
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power * 1.0000001) return factor * power;
  return 10 * power;
}

std::vector<double> multiples(Range range, double step) {
  std::vector<double> out;
  const double first = std::ceil(range.low / step - 1e-9);
  const double last = std::floor(range.high / step + 1e-9);
  for (double k = first; k <= last && out.size() < 200; ++k) out.push_back(k == 0 ? 0 : k * step);
  return out;
}

constexpr std::array<double, 3> kPerDecade = {1, 2, 5};

}  // namespace

std::vector<double> linear_ticks(Range range, int wanted) {
  if (!(range.high > range.low)) return {range.low};
  double step = nice_step(range.high - range.low, wanted);
  auto ticks = multiples(range, step);
  if (ticks.size() < 2) ticks = multiples(range, nice_step(range.high - range.low, wanted * 3));
  return ticks;
}

std::vector<double> log_ticks(Range range, int wanted) {
  if (!(range.low > 0)) return {};
  std::vector<double> all, tens;
  const int first = static_cast<int>(std::floor(std::log10(range.low) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(range.high) - 1e-9));
  for (int decade = first; decade <= last; ++decade) {
    for (const double factor : kPerDecade) {
      const double value = factor * std::pow(10, decade);
      if (value < range.low * 0.999999 || value > range.high * 1.000001) continue;
      all.push_back(value);
      if (factor == 1) tens.push_back(value);
    }
  }
  return all.size() <= static_cast<size_t>(wanted) || tens.size() < 2 ? all : tens;
}

std::vector<double> time_ticks(Range range, int wanted) {
  if (!(range.high > range.low)) return {range.low};
  const double raw = (range.high - range.low) / std::max(wanted, 1);
  if (raw <= 1) return linear_ticks(range, wanted);
  for (const double step : {1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0,
                            1800.0, 3600.0, 7200.0, 14400.0, 28800.0, 86400.0})
    if (raw <= step) return multiples(range, step);
  return multiples(range, nice_step(range.high - range.low, wanted));
}

Range nice_linear(double low, double high, bool from_zero, int wanted) {
  if (from_zero) low = std::min(low, 0.0);
  if (!(high > low)) {
    const double pad = low == 0 ? 1 : std::abs(low) * 0.1;
    high = low + pad;
    if (!from_zero) low -= pad;
  }
  const double step = nice_step(high - low, wanted);
  return {std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step};
}

Range nice_log(double low, double high) {
  const auto at_or_below = [](double value) {
    const double power = std::pow(10, std::floor(std::log10(value) + 1e-9));
    double best = power;
    for (const double factor : kPerDecade)
      if (factor * power <= value * 1.000001) best = factor * power;
    return best;
  };
  const auto at_or_above = [](double value) {
    const double power = std::pow(10, std::floor(std::log10(value) + 1e-9));
    for (const double factor : kPerDecade)
      if (factor * power >= value * 0.999999) return factor * power;
    return 10 * power;
  };
  Range range{at_or_below(low), at_or_above(high)};
  if (range.high <= range.low) range.high = at_or_above(range.low * 1.5);
  return range;
}

std::string tick_label(double value, const std::vector<double>& ticks) {
  double largest = std::abs(value), step = largest;
  bool thousands = true;
  for (size_t i = 0; i < ticks.size(); ++i) {
    largest = std::max(largest, std::abs(ticks[i]));
    thousands = thousands && std::fmod(ticks[i], 100) == 0;
    if (i > 0) step = i == 1 ? ticks[1] - ticks[0] : std::min(step, ticks[i] - ticks[i - 1]);
  }
  if (largest >= 2e4 && thousands && value != 0) {
    const bool millions = std::abs(value) >= 1e6;
    return without_tail(fixed(value / (millions ? 1e6 : 1e3), 2)) + (millions ? "M" : "k");
  }
  const int decimals =
      step > 0 ? std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9))) : 0;
  if (decimals == 0 && std::abs(value) >= 1000) return count(std::llround(value));
  return fixed(value, std::min(decimals, 6));
}

std::string duration_label(double milliseconds) {
  const bool in_seconds = std::abs(milliseconds) >= 1000;
  return without_tail(fixed(in_seconds ? milliseconds / 1000 : milliseconds, 3)) +
         (in_seconds ? " s" : " ms");
}

std::string time_label(double seconds_value, const std::vector<double>& ticks) {
  const double longest = ticks.empty() ? seconds_value : ticks.back();
  if (longest < 120) return tick_label(seconds_value, ticks) + " s";
  const auto whole = static_cast<int64_t>(std::llround(seconds_value));
  const auto two = [](int64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  if (longest < 7200) return std::to_string(whole / 60) + ":" + two(whole % 60);
  return std::to_string(whole / 3600) + ":" + two(whole % 3600 / 60) + ":" + two(whole % 60);
}

std::vector<Point> ecdf(std::vector<double> values, size_t denominator, size_t limit) {
  std::vector<Point> out;
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  denominator = std::max(denominator, values.size());
  const size_t stride = std::max<size_t>(1, values.size() / std::max<size_t>(limit, 2));
  for (size_t i = 0; i < values.size(); ++i) {
    const bool edge = i == 0 || i + 1 == values.size();
    if (!edge && i % stride != 0) continue;
    if (i + 1 < values.size() && values[i + 1] == values[i] && !edge)
      continue;  // the last of equals counts them all
    out.emplace_back(values[i], static_cast<double>(i + 1) / static_cast<double>(denominator));
  }
  return out;
}

std::vector<Point> thin(const std::vector<Point>& points, size_t buckets) {
  if (points.size() <= 2 * buckets || buckets == 0) return points;
  const double low = points.front().first, extent = points.back().first - low;
  if (!(extent > 0)) return {points.front(), points.back()};
  std::vector<Point> out;
  for (size_t at = 0; at < points.size();) {
    const auto bucket = [&](const Point& p) {
      return std::min<size_t>(buckets - 1, static_cast<size_t>((p.first - low) / extent *
                                                               static_cast<double>(buckets)));
    };
    const size_t here = bucket(points[at]);
    size_t lowest = at, highest = at, end = at;
    for (; end < points.size() && bucket(points[end]) == here; ++end) {
      if (points[end].second < points[lowest].second) lowest = end;
      if (points[end].second > points[highest].second) highest = end;
    }
    out.push_back(points[std::min(lowest, highest)]);
    if (lowest != highest) out.push_back(points[std::max(lowest, highest)]);
    at = end;
  }
  return out;
}

double label_width(std::string_view label, double font_size) {
  return static_cast<double>(length(label)) * font_size * 0.6;
}

namespace {
void coordinates(Html& out, const Point& point) {
  out.text(num(point.first)) << " ";
  out.text(num(point.second));
}
}  // namespace

Canvas::Canvas(double width, double height, Markup classes, std::string_view label) {
  out_ << "<svg";
  out_.attribute("class", classes.text)
      .attribute("viewBox", "0 0 " + num(width) + " " + num(height));
  out_.attribute("width", num(width)).attribute("height", num(height));
  out_ << " role=\"img\"";
  out_.attribute("aria-label", label);
  out_ << ">";
}

void Canvas::rect(double x, double y, double width, double height, Markup classes,
                  std::string_view tip) {
  out_ << "<rect";
  out_.attribute("class", classes.text).attribute("x", num(x)).attribute("y", num(y));
  out_.attribute("width", num(std::max(width, 0.0)))
      .attribute("height", num(std::max(height, 0.0)));
  if (!tip.empty()) out_.attribute("data-tip", tip);
  out_ << "/>";
}

void Canvas::line(double x1, double y1, double x2, double y2, Markup classes) {
  out_ << "<line";
  out_.attribute("class", classes.text).attribute("x1", num(x1)).attribute("y1", num(y1));
  out_.attribute("x2", num(x2)).attribute("y2", num(y2));
  out_ << "/>";
}

void Canvas::circle(double x, double y, double radius, Markup classes, std::string_view tip) {
  out_ << "<circle";
  out_.attribute("class", classes.text)
      .attribute("cx", num(x))
      .attribute("cy", num(y))
      .attribute("r", num(radius));
  if (!tip.empty()) out_.attribute("data-tip", tip);
  out_ << "/>";
}

void Canvas::text(double x, double y, std::string_view words, Markup classes, Anchor anchor) {
  out_ << "<text";
  out_.attribute("class", classes.text).attribute("x", num(x)).attribute("y", num(y));
  if (anchor == Anchor::kMiddle) out_ << " text-anchor=\"middle\"";
  if (anchor == Anchor::kEnd) out_ << " text-anchor=\"end\"";
  out_ << ">";
  out_.text(words) << "</text>";
}

void Canvas::path(const std::vector<Point>& points, Markup classes) {
  if (points.empty()) return;
  out_ << "<path";
  out_.attribute("class", classes.text) << " d=\"";
  for (size_t i = 0; i < points.size(); ++i) {
    out_ << (i == 0 ? Markup("M") : Markup("L"));
    coordinates(out_, points[i]);
  }
  out_ << "\"/>";
}

void Canvas::steps(const std::vector<Point>& points, Markup classes) {
  if (points.empty()) return;
  out_ << "<path";
  out_.attribute("class", classes.text) << " d=\"";
  for (size_t i = 0; i < points.size(); ++i) {
    if (i == 0) {
      out_ << "M";
      coordinates(out_, points[i]);
      continue;
    }
    out_ << "H";
    out_.text(num(points[i].first)) << "V";
    out_.text(num(points[i].second));
  }
  out_ << "\"/>";
}

void Canvas::area(const std::vector<Point>& points, double base, Markup classes) {
  if (points.empty()) return;
  out_ << "<path";
  out_.attribute("class", classes.text) << " d=\"M";
  coordinates(out_, {points.front().first, base});
  for (const auto& point : points) {
    out_ << "L";
    coordinates(out_, point);
  }
  out_ << "L";
  coordinates(out_, {points.back().first, base});
  out_ << "Z\"/>";
}

Html Canvas::finish() {
  out_ << "</svg>";
  return std::move(out_);
}

void axis_bottom(Canvas& canvas, const Scale& x, double y, const std::vector<double>& ticks,
                 const Label& label) {
  canvas.line(x.pixels().low, y, x.pixels().high, y, "axis");
  double free_from = -1e9;
  for (const double tick : ticks) {
    const double at = x(tick);
    const std::string words = label(tick);
    const double half = label_width(words) / 2;
    if (at - half < free_from) continue;
    canvas.line(at, y, at, y + 4, "axis");
    canvas.text(at, y + 16, words, "tick", Anchor::kMiddle);
    free_from = at + half + 6;
  }
}

void axis_left(Canvas& canvas, const Scale& y, double left, double right,
               const std::vector<double>& ticks, const Label& label) {
  for (const double tick : ticks) {
    const double at = y(tick);
    canvas.line(left, at, right, at, "grid");
    canvas.text(left - 6, at + 3.5, label(tick), "tick", Anchor::kEnd);
  }
}

}  // namespace anvil::report::svg
