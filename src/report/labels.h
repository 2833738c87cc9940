#pragma once

#include <string_view>
#include <vector>

#include "report/svg.h"

namespace anvil::report {

// Words beside points of a chart that never cover each other, a point or the edge: a label goes to
// the first free of a few places around its point, and is left out where none is free (what it says
// stands in the tooltip and in a table as well).
//
// Lifecycle: occupy() every point, then put() the labels.
class Labels {
 public:
  Labels(svg::Range x, svg::Range y) : x_(x), y_(y) {}
  void occupy(double x, double y, double radius);
  void put(svg::Canvas& canvas, double x, double y, std::string_view words, Markup classes);
  // Names a horizontal line, above or below it at one of its ends.
  void put_along(svg::Canvas& canvas, double y, std::string_view words, Markup classes);

 private:
  struct Box {
    double left, top, right, bottom;
  };
  bool take(const Box& box);

  svg::Range x_, y_;
  std::vector<Box> taken_;
};

}  // namespace anvil::report
