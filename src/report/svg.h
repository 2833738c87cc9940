#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/html.h"

// Small deterministic SVG helpers: the same data always gives the same bytes. Colours and fonts
// come from classes of the page's style sheet, so that light, dark and print differ there only.
namespace anvil::report::svg {

// A coordinate: at most two decimals, no trailing zeros, never "-0".
std::string num(double value);

struct Range {
  double low = 0, high = 1;
};

// Maps data to pixels. A logarithmic scale clamps values at or below zero to its low end; a range
// without extent maps to the middle.
class Scale {
 public:
  static Scale linear(Range data, Range pixels) { return {data, pixels, false}; }
  static Scale logarithmic(Range data, Range pixels) { return {data, pixels, true}; }
  double operator()(double value) const;
  const Range& data() const { return data_; }
  const Range& pixels() const { return pixels_; }
  bool is_logarithmic() const { return logarithmic_; }

 private:
  Scale(Range data, Range pixels, bool logarithmic)
      : data_(data), pixels_(pixels), logarithmic_(logarithmic) {}
  Range data_, pixels_;
  bool logarithmic_;
};

// Multiples of 1, 2 or 5 times a power of ten inside the range; about `wanted` of them, at least
// two if it has extent.
std::vector<double> linear_ticks(Range range, int wanted);
// 1, 2, 5 per decade, or powers of ten only where those would be more than `wanted`.
std::vector<double> log_ticks(Range range, int wanted);
// Seconds at steps that people count in: 1, 2, 5, 10, 15, 30 s, 1, 2, 5, ... min, 1, 2, ... h.
std::vector<double> time_ticks(Range range, int wanted);
// The smallest range with tick ends around [low, high]; from zero if `from_zero`.
Range nice_linear(double low, double high, bool from_zero, int wanted);
// The range from tick to tick (1, 2, 5 per decade) around [low, high]; both positive.
Range nice_log(double low, double high);
// Decimals that tell neighbouring ticks apart.
std::string tick_label(double value, const std::vector<double>& ticks);
// "0.5 ms", "200 ms", "2 s": a tick of a latency axis, which is a short number.
std::string duration_label(double milliseconds);
// "45 s", "1:30", "2:00:00" on an axis whose ticks are these.
std::string time_label(double seconds, const std::vector<double>& ticks);

using Point = std::pair<double, double>;
// Steps of the empirical distribution: (value, share of `denominator` at or below it), at most
// about `limit` points, first and last kept. `denominator` counts the values that never came as
// well.
std::vector<Point> ecdf(std::vector<double> values, size_t denominator, size_t limit);
// At most two points (lowest and highest) per bucket of the x range; order kept.
std::vector<Point> thin(const std::vector<Point>& points, size_t buckets);

// Estimated width of a chart label.
double label_width(std::string_view label, double font_size = 11);

enum class Anchor { kStart, kMiddle, kEnd };

// One drawing. Lifecycle: draw, then finish() once.
class Canvas {
 public:
  // `label` says in a sentence what the chart shows, for people who do not see it.
  Canvas(double width, double height, Markup classes, std::string_view label);

  void rect(double x, double y, double width, double height, Markup classes,
            std::string_view tip = {});
  void line(double x1, double y1, double x2, double y2, Markup classes);
  void circle(double x, double y, double radius, Markup classes, std::string_view tip = {});
  void text(double x, double y, std::string_view words, Markup classes,
            Anchor anchor = Anchor::kStart);
  void path(const std::vector<Point>& points, Markup classes);
  // Horizontal, then vertical: for distributions and counters.
  void steps(const std::vector<Point>& points, Markup classes);
  void area(const std::vector<Point>& points, double base, Markup classes);
  Html finish();

 private:
  Html out_;
};

using Label = std::function<std::string(double)>;
// Ticks with labels below a plot whose lower edge is `y`; labels that would touch the one before
// are left out.
void axis_bottom(Canvas& canvas, const Scale& x, double y, const std::vector<double>& ticks,
                 const Label& label);
// Grid lines from `left` to `right` with labels to the left of the plot.
void axis_left(Canvas& canvas, const Scale& y, double left, double right,
               const std::vector<double>& ticks, const Label& label);

}  // namespace anvil::report::svg
