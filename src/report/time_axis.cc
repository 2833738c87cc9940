#include "report/time_axis.h"

#include <algorithm>

#include "report/text.h"

namespace anvil::report {

namespace {
// From the launch, or the first request or sample, to the last: what a long preflight or derivation
// takes is not drawn.
svg::Range span_of(const Facts& facts) {
  Nanos low = 0, high = 0;
  const auto see = [&](Nanos from, Nanos to) {
    if (from <= 0) return;
    low = low == 0 ? from : std::min(low, from);
    high = std::max(high, to);
  };
  for (const Request& request : facts.requests) see(request.start, request.end);
  for (const Sample& sample : facts.samples) see(sample.at, sample.at);
  if (high <= low) low = facts.zero, high = facts.last;
  if (const Step* launch = facts.step("launch");
      launch && launch->begin < low && launch->end >= low - (high - low))
    low = launch->begin;
  return {facts.seconds(low), std::max(facts.seconds(high), facts.seconds(low) + 1e-3)};
}
}  // namespace

TimeAxis::TimeAxis(const Facts& facts)
    : facts_(facts),
      scale_(svg::Scale::linear(span_of(facts), {kLeft, kRight})),
      ticks_(svg::time_ticks(scale_.data(), 10)) {}

void TimeAxis::phases(svg::Canvas& canvas, double top, double bottom, bool named) const {
  double free_from = 0;
  bool odd = false;
  for (const Step& step : facts_.steps) {
    const Nanos end = step.ending == Step::Ending::kOpen ? facts_.last : step.end;
    const double from = std::max((*this)(step.begin), kLeft), to = std::min((*this)(end), kRight);
    if (from > kRight || to < kLeft) continue;
    odd = !odd;
    const std::string tip = step.name + ": " +
                            seconds(static_cast<double>(end - step.begin) / 1e9) +
                            (step.ending == Step::Ending::kFailed ? ", failed" : "");
    canvas.rect(from, top, std::max(to - from, 0.5), bottom - top,
                step.ending == Step::Ending::kFailed ? Markup("phase bad")
                : odd                                ? Markup("phase")
                                                     : Markup("phase alt"),
                tip);
    if (!named) continue;
    const double width = svg::label_width(step.name);
    if (width + 6 > to - from || from + 3 < free_from) continue;
    canvas.text((from + to) / 2, top - 6, step.name, "tick", svg::Anchor::kMiddle);
    free_from = (from + to + width) / 2 + 6;
  }
}

void TimeAxis::ticks(svg::Canvas& canvas, double top, double bottom, bool labelled) const {
  for (const double tick : ticks_) canvas.line(scale_(tick), top, scale_(tick), bottom, "grid");
  if (labelled)
    svg::axis_bottom(canvas, scale_, bottom, ticks_,
                     [this](double value) { return svg::time_label(value, ticks_); });
}

}  // namespace anvil::report
