#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/facts.h"
#include "report/svg.h"
#include "report/time_axis.h"

namespace anvil::report {

// A quantity over the run, drawn as a strip on the axis of the timeline.
struct TimeSeries {
  std::string subject, title, unit;
  std::vector<svg::Point> points;  // (run seconds, value)
  bool from_zero = true;
  bool least = false;  // the low end matters, not the high one
  Markup line = "curve s1";
  Markup area = "area";
};

// One value per sample that has it.
TimeSeries read_series(const Facts& facts, std::string subject, std::string title, std::string unit,
                       bool from_zero,
                       const std::function<std::optional<double>(const Sample&)>& read);
// Requests between being sent and their end, of every purpose.
TimeSeries under_way_series(const Facts& facts);
// Memory and processors of the engine's processes.
std::vector<TimeSeries> engine_series(const Facts& facts);

// Height of n strips with the gaps between them.
double series_height(size_t n);
// Draws the strips from `top` down, with time labels below the last one. `named` puts the names of
// the steps above the first.
void draw_series(svg::Canvas& canvas, const TimeAxis& axis, const Facts& facts,
                 const std::vector<TimeSeries>& series, double top, bool named);

}  // namespace anvil::report
