#include <algorithm>
#include <functional>

#include "report/charts.h"
#include "report/svg.h"
#include "report/text.h"
#include "report/time_axis.h"

namespace anvil::report {

namespace {

struct Series {
  std::string subject, title, unit;
  std::vector<svg::Point> points;  // (seconds, value)
  bool from_zero = true;
  bool least = false;  // the low end matters, not the high one
};

using Read = std::function<std::optional<double>(const Sample&)>;

Series read_series(const Facts& facts, std::string subject, std::string title, std::string unit,
                   bool from_zero, const Read& read) {
  Series out{std::move(subject), std::move(title), std::move(unit), {}, from_zero, false};
  for (const Sample& sample : facts.samples)
    if (const auto value = read(sample)) out.points.emplace_back(facts.seconds(sample.at), *value);
  return out;
}

// Processor seconds per second between neighbouring samples. A counter that falls (another process
// tree) starts anew.
Series cpu_series(const Facts& facts) {
  Series out{"Engine", "processors", "cores", {}, true, false};
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

std::vector<Series> all_series(const Facts& facts) {
  std::vector<Series> out;
  out.push_back(read_series(facts, "Engine", "memory", "GiB", true,
                            [](const Sample& s) { return s.rss_gib; }));
  out.push_back(cpu_series(facts));
  out.push_back(read_series(facts, "Host", "memory free", "GiB", true,
                            [](const Sample& s) { return s.available_gib; }));
  out.back().least = true;
  size_t gpus = 0;
  for (const Sample& sample : facts.samples) gpus = std::max(gpus, sample.gpus.size());
  for (size_t i = 0; i < gpus; ++i) {
    std::string name;
    for (const Sample& sample : facts.samples)
      if (i < sample.gpus.size()) {
        name = one_line(sample.gpus[i].label);
        break;
      }
    const auto gpu = [i](const Sample& s,
                         std::optional<double> GpuSample::*member) -> std::optional<double> {
      return i < s.gpus.size() ? s.gpus[i].*member : std::nullopt;
    };
    const auto add = [&](const char* title, const char* unit, bool from_zero,
                         std::optional<double> GpuSample::*member) {
      out.push_back(read_series(facts, name, title, unit, from_zero,
                                [gpu, member](const Sample& s) { return gpu(s, member); }));
    };
    add("memory", "GiB", true, &GpuSample::used_gib);
    add("power", "W", true, &GpuSample::power_w);
    add("heat",
        "\xC2\xB0"
        "C",
        false, &GpuSample::temperature_c);
    add("clock", "MHz", false, &GpuSample::clock_mhz);
  }
  std::erase_if(out, [](const Series& series) { return series.points.size() < 2; });
  return out;
}

}  // namespace

Html hardware_charts(const Facts& facts) {
  const auto series = all_series(facts);
  if (series.empty()) return {};
  constexpr double kTop = 22, kPlot = 62, kGap = 20;
  const double bottom = kTop + static_cast<double>(series.size()) * (kPlot + kGap) - kGap;
  std::string names;
  for (const Series& each : series)
    names += (names.empty() ? "" : ", ") + each.subject + " " + each.title;
  const TimeAxis axis(facts);
  svg::Canvas canvas(TimeAxis::kWidth, bottom + 26, "wide", "Hardware over time: " + names);
  double y = kTop;
  for (const Series& each : series) {
    double low = each.points.front().second, high = low;
    for (const auto& point : each.points)
      low = std::min(low, point.second), high = std::max(high, point.second);
    const svg::Range range = svg::nice_linear(low, high, each.from_zero, 3);
    const svg::Scale scale = svg::Scale::linear(range, {y + kPlot, y});
    axis.phases(canvas, y, y + kPlot, &each == &series.front());
    const bool last = &each == &series.back();
    axis.ticks(canvas, y, y + kPlot, last);
    const auto ticks = svg::linear_ticks(range, 3);
    svg::axis_left(canvas, scale, TimeAxis::kLeft, TimeAxis::kRight, ticks,
                   [&](double value) { return svg::tick_label(value, ticks); });
    std::vector<svg::Point> pixels;
    for (const auto& [at, value] : svg::thin(each.points, 430))
      pixels.emplace_back(axis(facts.zero + static_cast<Nanos>(at * 1e9)), scale(value));
    if (each.from_zero) canvas.area(pixels, scale(range.low), "area");
    canvas.path(pixels, "curve s1");
    canvas.text(0, y + 11, ellipsis(each.subject, 14), "band");
    canvas.text(0, y + 27, each.title + ", " + each.unit, "tick");
    canvas.text(0, y + 43, each.least ? "least " + figure(low) : "most " + figure(high), "tick");
    y += kPlot + kGap;
  }
  Html out;
  out << "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Hardware over time\">"
      << canvas.finish() << "</div>";
  return out;
}

}  // namespace anvil::report
