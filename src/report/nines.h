#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "report/svg.h"

namespace anvil::report {

// Quantile curves (results.json "curves") on an axis of nines: the distance from p90 to p99 is that
// from p99 to p99.9, so that the tail can be seen.
struct Nines {
  // -log10(1 - share): 1 at p90, 2 at p99.
  static double axis(double share);
  // (axis, value) of a curve. The largest value stands halfway between the share before it and 1
  // instead of at infinity. Pairs that are none are left out.
  static std::vector<svg::Point> points(const Json& curve);
  // The axis position of the highest of p50, p90, p95, p99 and p99.9 that n values can certify.
  static double certified(int64_t n);
  // A scale that holds all values of the curves, in milliseconds.
  static svg::Scale values(const std::vector<std::vector<svg::Point>>& curves, svg::Range pixels);
  // Grid and both axes.
  static void frame(svg::Canvas& canvas, const svg::Scale& x, const svg::Scale& y);
  // `beyond` draws what lies behind the certified percentile.
  static void draw(svg::Canvas& canvas, const svg::Scale& x, const svg::Scale& y,
                   const std::vector<svg::Point>& points, double certified, Markup line,
                   Markup beyond);
};

}  // namespace anvil::report
