#include "report/time_series.h"

#include <algorithm>
#include <map>

#include "report/text.h"

namespace anvil::report {

namespace {

constexpr double kPlot = 62, kGap = 20;

// Processor seconds per second between neighbouring samples. A counter that falls (another process
// tree) starts anew.
TimeSeries cpu_series(const Facts& facts) {
  TimeSeries out{"Engine", "processors", "cores", {}, true, false};
  const Sample* before = nullptr;
  for (const Sample& sample : facts.samples) {
    if (!sample.cpu_s) continue;
    if (before && sample.at > before->at && *sample.cpu_s >= *before->cpu_s) {
      const double width = static_cast<double>(sample.at - before->at) / 1e9;
      out.points.emplace_back(facts.seconds(sample.at), (*sample.cpu_s - *before->cpu_s) / width);
    }
    before = &sample;
  }
  return out;
}

}  // namespace

TimeSeries read_series(const Facts& facts, std::string subject, std::string title, std::string unit,
                       bool from_zero,
                       const std::function<std::optional<double>(const Sample&)>& read) {
  TimeSeries out{std::move(subject), std::move(title), std::move(unit), {}, from_zero, false};
  for (const Sample& sample : facts.samples)
    if (const auto value = read(sample)) out.points.emplace_back(facts.seconds(sample.at), *value);
  return out;
}

TimeSeries under_way_series(const Facts& facts) {
  TimeSeries out{"Requests", "under way", "", {}, true, false, "curve s2", "area s2"};
  std::map<Nanos, int> changes;
  for (const Request& request : facts.requests) {
    if (request.start <= 0 || request.end <= request.start) continue;
    ++changes[request.start];
    --changes[request.end];
  }
  int now = 0;
  for (const auto& [at, change] : changes) {
    // A level lasts until the next change, so both of its ends are points.
    out.points.emplace_back(facts.seconds(at), now);
    now += change;
    out.points.emplace_back(facts.seconds(at), now);
  }
  return out;
}

std::vector<TimeSeries> engine_series(const Facts& facts) {
  std::vector<TimeSeries> out;
  out.push_back(cpu_series(facts));
  out.push_back(read_series(facts, "Engine", "memory", "GiB", true,
                            [](const Sample& s) { return s.rss_gib; }));
  std::erase_if(out, [](const TimeSeries& series) { return series.points.size() < 2; });
  return out;
}

double series_height(size_t n) {
  return n == 0 ? 0 : static_cast<double>(n) * (kPlot + kGap) - kGap;
}

void draw_series(svg::Canvas& canvas, const TimeAxis& axis, const Facts& facts,
                 const std::vector<TimeSeries>& series, double top, bool named) {
  double y = top;
  for (const TimeSeries& each : series) {
    double low = each.points.front().second, high = low;
    for (const auto& point : each.points)
      low = std::min(low, point.second), high = std::max(high, point.second);
    const svg::Range range = svg::nice_linear(low, high, each.from_zero, 3);
    const svg::Scale scale = svg::Scale::linear(range, {y + kPlot, y});
    axis.phases(canvas, y, y + kPlot, named && &each == &series.front());
    axis.ticks(canvas, y, y + kPlot, &each == &series.back());
    const auto ticks = svg::linear_ticks(range, 3);
    svg::axis_left(canvas, scale, TimeAxis::kLeft, TimeAxis::kRight, ticks,
                   [&](double value) { return svg::tick_label(value, ticks); });
    std::vector<svg::Point> pixels;
    for (const auto& [at, value] : svg::thin(each.points, 430))
      pixels.emplace_back(axis(facts.zero + static_cast<Nanos>(at * 1e9)), scale(value));
    if (each.from_zero) canvas.area(pixels, scale(range.low), each.area);
    canvas.path(pixels, each.line);
    canvas.text(0, y + 11, ellipsis(each.subject, 14), "band");
    canvas.text(0, y + 27, each.title + (each.unit.empty() ? "" : ", " + each.unit), "tick");
    canvas.text(0, y + 43,
                each.least          ? "least " + figure(low)
                : each.unit.empty() ? "most " + count(static_cast<int64_t>(high))
                                    : "most " + figure(high),
                "tick");
    y += kPlot + kGap;
  }
}

}  // namespace anvil::report
