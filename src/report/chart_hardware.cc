#include <algorithm>

#include "report/charts.h"
#include "report/text.h"
#include "report/time_series.h"

namespace anvil::report {

namespace {

std::vector<TimeSeries> host_series(const Facts& facts) {
  std::vector<TimeSeries> out;
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
  std::erase_if(out, [](const TimeSeries& series) { return series.points.size() < 2; });
  return out;
}

}  // namespace

Html hardware_charts(const Facts& facts) {
  const auto series = host_series(facts);
  if (series.empty()) return {};
  constexpr double kTop = 22;
  std::string names;
  for (const TimeSeries& each : series)
    names += (names.empty() ? "" : ", ") + each.subject + " " + each.title;
  const TimeAxis axis(facts);
  svg::Canvas canvas(TimeAxis::kWidth, kTop + series_height(series.size()) + 26, "wide",
                     "Hardware over time: " + names);
  draw_series(canvas, axis, facts, series, kTop, true);
  Html out;
  out << "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Hardware over time\">"
      << canvas.finish() << "</div>";
  return out;
}

}  // namespace anvil::report
