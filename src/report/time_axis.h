#pragma once

#include "report/facts.h"
#include "report/svg.h"

namespace anvil::report {

// The axis that the timeline and the hardware charts share: run seconds, with the steps
// as shaded phases.
class TimeAxis {
 public:
  static constexpr double kWidth = 1000, kLeft = 128, kRight = 988;

  explicit TimeAxis(const Facts& facts);

  double length() const { return scale_.data().high - scale_.data().low; }  // seconds
  double operator()(Nanos at) const { return scale_(facts_.seconds(at)); }
  // Draws the phases between two heights; names them above `top` if `named` and there is room.
  void phases(svg::Canvas& canvas, double top, double bottom, bool named) const;
  // Tick lines, and labels below `bottom` if `labelled`.
  void ticks(svg::Canvas& canvas, double top, double bottom, bool labelled) const;

 private:
  const Facts& facts_;
  svg::Scale scale_;
  std::vector<double> ticks_;
};

}  // namespace anvil::report
