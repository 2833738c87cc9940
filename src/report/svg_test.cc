#include "report/svg.h"

#include <gtest/gtest.h>

#include <cmath>

namespace anvil::report::svg {
namespace {

using Ticks = std::vector<double>;

TEST(Number, HasTwoDecimalsAtMostAndNoTail) {
  EXPECT_EQ(num(1), "1");
  EXPECT_EQ(num(1.5), "1.5");
  EXPECT_EQ(num(1.239), "1.24");
  EXPECT_EQ(num(-0.001), "0");
  EXPECT_EQ(num(100), "100");
  EXPECT_EQ(num(std::nan("")), "0");
}

TEST(Scale, MapsLinearlyAndByDecades) {
  const Scale linear = Scale::linear({0, 10}, {100, 200});
  EXPECT_DOUBLE_EQ(linear(0), 100);
  EXPECT_DOUBLE_EQ(linear(5), 150);
  EXPECT_DOUBLE_EQ(linear(20), 300);
  const Scale log = Scale::logarithmic({1, 100}, {0, 100});
  EXPECT_DOUBLE_EQ(log(10), 50);
  EXPECT_DOUBLE_EQ(log(0), 0) << "a value that has no logarithm stands at the low end";
  EXPECT_DOUBLE_EQ(Scale::linear({3, 3}, {0, 10})(3), 5) << "a range without extent";
  EXPECT_DOUBLE_EQ(Scale::linear({0, 1}, {200, 0})(0.25), 150) << "pixels that run downwards";
}

TEST(Ticks, AreNiceMultiples) {
  EXPECT_EQ(linear_ticks({0, 10}, 5), (Ticks{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(linear_ticks({-3, 3}, 3), (Ticks{-2, 0, 2}));
  EXPECT_EQ(linear_ticks({7, 7}, 5), (Ticks{7}));
  EXPECT_EQ(log_ticks({1, 100}, 10), (Ticks{1, 2, 5, 10, 20, 50, 100}));
  EXPECT_EQ(log_ticks({1, 10000}, 6), (Ticks{1, 10, 100, 1000, 10000}));
  EXPECT_EQ(log_ticks({0, 10}, 6), Ticks{});
  EXPECT_EQ(time_ticks({0, 100}, 10), (Ticks{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}));
  EXPECT_EQ(time_ticks({0, 600}, 5), (Ticks{0, 120, 240, 360, 480, 600}));
  EXPECT_LE(time_ticks({0, 86400.0 * 400}, 10).size(), 12u);
}

TEST(Ticks, AreNeverTooManyOrTooFew) {
  for (double high : {1e-9, 0.003, 0.7, 1.0, 9.99, 1234.5, 7e8})
    for (int wanted : {1, 2, 5, 10}) {
      const auto ticks = linear_ticks({0, high}, wanted);
      EXPECT_GE(ticks.size(), 2u) << high << " " << wanted;
      EXPECT_LE(ticks.size(), 3u * static_cast<unsigned>(wanted) + 1) << high << " " << wanted;
    }
}

TEST(Ticks, HaveLabelsThatDiffer) {
  const Ticks fine = {0, 0.05, 0.1};
  EXPECT_EQ(tick_label(0.05, fine), "0.05");
  EXPECT_EQ(tick_label(1500, {0, 1500, 3000}), "1,500");
  EXPECT_EQ(tick_label(2.5e6, {0, 2.5e6, 5e6}), "2.5M");
  EXPECT_EQ(tick_label(10000, {10000, 100000}), "10k");
  EXPECT_EQ(tick_label(0, {0, 50000}), "0");
  EXPECT_EQ(duration_label(0.5), "0.5 ms");
  EXPECT_EQ(duration_label(50), "50 ms");
  EXPECT_EQ(duration_label(2000), "2 s");
  EXPECT_EQ(time_label(90, {0, 30, 60, 90}), "90 s");
  EXPECT_EQ(time_label(150, {0, 150, 300}), "2:30");
  EXPECT_EQ(time_label(7265, {0, 7265}), "2:01:05");
}

TEST(Range, EncloseTheData) {
  for (const auto& [low, high] :
       std::vector<std::pair<double, double>>{{3, 97}, {0.2, 0.21}, {1, 1}, {0.001, 8000}}) {
    const Range linear = nice_linear(low, high, true, 4);
    EXPECT_LE(linear.low, 0);
    EXPECT_GE(linear.high, high);
    const Range log = nice_log(low, high);
    EXPECT_LE(log.low, low * 1.00001);
    EXPECT_GE(log.high, high * 0.99999);
    EXPECT_LT(log.low, log.high);
  }
  const Range flat = nice_linear(0, 0, true, 4);
  EXPECT_LT(flat.low, flat.high);
}

TEST(Ecdf, CountsValuesThatNeverCame) {
  const auto points = ecdf({30, 10, 20}, 4, 100);
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points.front(), Point(10, 0.25));
  EXPECT_EQ(points.back(), Point(30, 0.75));
  EXPECT_TRUE(ecdf({}, 5, 100).empty());
}

TEST(Ecdf, KeepsItsEndsWhenThinned) {
  std::vector<double> values;
  for (int i = 0; i < 10000; ++i) values.push_back(i);
  const auto points = ecdf(values, values.size(), 100);
  EXPECT_LE(points.size(), 110u);
  EXPECT_EQ(points.front().first, 0);
  EXPECT_EQ(points.back(), Point(9999, 1));
}

TEST(Thin, KeepsPeaks) {
  std::vector<Point> points;
  for (int i = 0; i < 5000; ++i) points.emplace_back(i, i == 2345 ? 99 : 1);
  const auto few = thin(points, 50);
  EXPECT_LE(few.size(), 100u);
  EXPECT_NE(std::find(few.begin(), few.end(), Point(2345, 99)), few.end());
  EXPECT_EQ(thin({{1, 1}, {2, 2}}, 50).size(), 2u);
}

TEST(Canvas, EscapesAndLabels) {
  Canvas canvas(100, 50, "panel", "A \"chart\" of <x>");
  canvas.text(1, 2, "<&>", "tick");
  canvas.rect(0, 0, -5, 1.005, "bar", "tip\nline");
  canvas.steps({{0, 10}, {5, 5}}, "curve s1");
  EXPECT_EQ(canvas.finish().str(),
            "<svg class=\"panel\" viewBox=\"0 0 100 50\" width=\"100\" height=\"50\" role=\"img\" "
            "aria-label=\"A &quot;chart&quot; of &lt;x&gt;\"><text class=\"tick\" x=\"1\" "
            "y=\"2\">&lt;&amp;&gt;</text>"
            "<rect class=\"bar\" x=\"0\" y=\"0\" width=\"0\" height=\"1\" data-tip=\"tip\nline\"/>"
            "<path class=\"curve s1\" d=\"M0 10H5V5\"/></svg>");
}

TEST(Axis, LeavesOutLabelsThatWouldTouch) {
  Canvas canvas(100, 50, "panel", "x");
  const Scale x = Scale::linear({0, 100}, {0, 60});
  axis_bottom(canvas, x, 40, {0, 10, 20, 100}, [](double) { return std::string("wide label"); });
  const std::string out = canvas.finish().str();
  size_t labels = 0;
  for (size_t at = 0; (at = out.find("<text", at)) != std::string::npos; ++at) ++labels;
  EXPECT_EQ(labels, 1u);
}

}  // namespace
}  // namespace anvil::report::svg
