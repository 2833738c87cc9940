#include <algorithm>

#include "report/charts.h"
#include "report/json_read.h"
#include "report/svg.h"
#include "report/text.h"
#include "report/time_axis.h"
#include "report/time_series.h"
#include "report/view.h"

namespace anvil::report {

namespace {

constexpr size_t kMostBars = 1500;

// Requests that belong together, and the row of each.
struct Band {
  std::string label;
  int order = 0;
  std::vector<const Request*> requests;
  std::vector<size_t> row;
  size_t rows = 0;
};

std::pair<int, std::string> band_of(const Request& request) {
  using evidence::Purpose;
  switch (request.purpose) {
    case Purpose::kFingerprint:
      return {0, "fingerprint"};
    case Purpose::kCheck:
      return {1, "checks"};
    case Purpose::kCalibrate:
      return {2, "token search"};
    case Purpose::kWarmup:
    case Purpose::kLane:
      return {3, request.lane};
    case Purpose::kLadder:
      return {4, "ladder"};
    case Purpose::kProbe:
      return {5, "health probes"};
  }
  return {6, "other"};
}

// Every failed request, and as many of the others as fit, evenly.
std::vector<const Request*> chosen(const Facts& facts) {
  size_t failed = 0;
  for (const Request& request : facts.requests) failed += request.ok() ? 0 : 1;
  const size_t good = facts.requests.size() - failed;
  const size_t room = kMostBars > failed ? kMostBars - failed : 0;
  const size_t stride = facts.requests.size() <= kMostBars ? 1
                        : room == 0                        ? good + 1
                                                           : (good + room - 1) / room;
  std::vector<const Request*> out;
  size_t seen_good = 0, kept_failed = 0;
  for (const Request& request : facts.requests) {
    if (request.start <= 0) continue;
    const bool keep =
        request.ok() ? seen_good++ % stride == 0 && stride <= good : kept_failed++ < kMostBars;
    if (keep) out.push_back(&request);
  }
  return out;
}

std::vector<Band> bands_of(const std::vector<const Request*>& requests) {
  std::vector<Band> bands;
  for (const Request* request : requests) {
    const auto [order, label] = band_of(*request);
    auto found = std::find_if(bands.begin(), bands.end(), [&](const Band& band) {
      return band.order == order && band.label == label;
    });
    if (found == bands.end()) found = bands.insert(bands.end(), Band{label, order, {}, {}, 0});
    found->requests.push_back(request);
  }
  std::stable_sort(bands.begin(), bands.end(),
                   [](const Band& a, const Band& b) { return a.order < b.order; });
  for (Band& band : bands) {
    std::stable_sort(band.requests.begin(), band.requests.end(),
                     [](const Request* a, const Request* b) { return a->start < b->start; });
    std::vector<Nanos> free_from;
    for (const Request* request : band.requests) {
      size_t row = 0;
      while (row < free_from.size() && free_from[row] > request->start) ++row;
      if (row == free_from.size()) free_from.push_back(0);
      free_from[row] = std::max(request->end, request->start + 1);
      band.row.push_back(row);
    }
    band.rows = free_from.size();
  }
  return bands;
}

std::string tip_of(const Facts& facts, const Request& request) {
  std::string out =
      "#" + std::to_string(request.seq) + " " + std::string(evidence::name(request.purpose));
  if (!request.lane.empty()) out += " " + one_line(request.lane);
  if (!request.item.empty()) out += " / " + one_line(request.item);
  out += "\nsent at " + seconds(facts.seconds(request.start));
  if (const auto ttfo = request.ttfo_ms) out += "\nTTFO " + milliseconds(*ttfo);
  if (const auto e2e = request.e2e_ms) out += ", E2E " + milliseconds(*e2e);
  if (request.prompt_tokens) out += "\n" + count(*request.prompt_tokens) + " prompt tokens";
  if (request.cached_tokens && *request.cached_tokens > 0)
    out += " (" + count(*request.cached_tokens) + " cached)";
  if (request.completion_tokens) out += ", " + count(*request.completion_tokens) + " out";
  if (!request.ok())
    out += "\n" + std::string(evidence::name(request.outcome)) + ": " +
           ellipsis(one_line(request.error_detail), 160);
  return out;
}

void bar(svg::Canvas& canvas, const TimeAxis& axis, const Facts& facts, const Request& request,
         double y, double height) {
  const double from = axis(request.start), to = std::max(axis(request.end), from + 1);
  const std::string tip = tip_of(facts, request);
  using evidence::Outcome;
  if (!request.ok()) {
    canvas.rect(from, y, std::max(to - from, 2.0), height,
                request.outcome == Outcome::kTimeout     ? Markup("bar timeout")
                : request.outcome == Outcome::kCancelled ? Markup("bar cancelled")
                                                         : Markup("bar failed"),
                tip);
    return;
  }
  const bool warmup = request.purpose == evidence::Purpose::kWarmup;
  const double split =
      request.first_output ? std::clamp(axis(*request.first_output), from, to) : to;
  if (split - from > 0.25)
    canvas.rect(from, y, split - from, height,
                warmup ? Markup("bar wait warm") : Markup("bar wait"), tip);
  if (to - split > 0.25)
    canvas.rect(split, y, to - split, height, warmup ? Markup("bar gen warm") : Markup("bar gen"),
                tip);
}

// A line on the upper edge where a lane ran as planned.
void steady_windows(svg::Canvas& canvas, const TimeAxis& axis, const Facts& facts, double top,
                    double bottom) {
  for (const Json& lane : list_at(facts.results, {"lanes"})) {
    const auto from = integer_at(lane, {"steady", "from_ns"}),
               to = integer_at(lane, {"steady", "to_ns"});
    if (!from || !to || *to <= *from || *from < facts.zero || *to > facts.last) continue;
    const std::string tip = "steady window of " + one_line(text_at(lane, {"id"})) + ": " +
                            seconds(static_cast<double>(*to - *from) / 1e9);
    const double left = axis(*from), width = std::max(axis(*to) - left, 1.0);
    canvas.rect(left, top, width, bottom - top, "steady-span", tip);
    canvas.rect(left, top, width, 3, "steady-edge", tip);
  }
}

}  // namespace

Html timeline_chart(const Facts& facts) {
  const auto requests = chosen(facts);
  if (requests.empty()) return {};
  const auto bands = bands_of(requests);
  size_t rows = 0;
  for (const Band& band : bands) rows += band.rows;
  const double row_height = std::clamp(420.0 / static_cast<double>(rows), 1.5, 15.0);
  const double gap = row_height > 5 ? 2 : row_height > 3 ? 1 : 0;
  constexpr double kTop = 24, kBandGap = 11;
  double height = kTop + kBandGap / 2;
  for (const Band& band : bands)
    height += std::max(static_cast<double>(band.rows) * row_height, 13.0) + kBandGap;
  const double bottom = height;
  std::vector<TimeSeries> strips = engine_series(facts);
  if (TimeSeries under_way = under_way_series(facts); under_way.points.size() >= 2)
    strips.insert(strips.begin(), std::move(under_way));
  constexpr double kStripsBelow = 34;

  const TimeAxis axis(facts);
  size_t failed = 0;
  for (const Request* request : requests) failed += request->ok() ? 0 : 1;
  svg::Canvas canvas(
      TimeAxis::kWidth,
      bottom + (strips.empty() ? 0 : kStripsBelow + series_height(strips.size())) + 26, "wide",
      "Timeline of " + count(static_cast<int64_t>(requests.size())) + " requests over " +
          seconds(axis.length()) + ", " + count(static_cast<int64_t>(failed)) + " failed");
  axis.phases(canvas, kTop, bottom, true);
  axis.ticks(canvas, kTop, bottom, true);
  steady_windows(canvas, axis, facts, kTop, bottom);
  double y = kTop + kBandGap / 2;
  for (const Band& band : bands) {
    const double band_height = std::max(static_cast<double>(band.rows) * row_height, 13.0);
    canvas.text(TimeAxis::kLeft - 10, y + band_height / 2 + 4, ellipsis(one_line(band.label), 19),
                "band", svg::Anchor::kEnd);
    const double start = y + (band_height - static_cast<double>(band.rows) * row_height) / 2;
    for (size_t i = 0; i < band.requests.size(); ++i)
      bar(canvas, axis, facts, *band.requests[i],
          start + static_cast<double>(band.row[i]) * row_height, row_height - gap);
    y += band_height + kBandGap;
    if (&band != &bands.back())
      canvas.line(TimeAxis::kLeft, y - kBandGap / 2, TimeAxis::kRight, y - kBandGap / 2,
                  "band-line");
  }
  draw_series(canvas, axis, facts, strips, bottom + kStripsBelow, false);
  Html out;
  out << "<ul class=\"legend\"><li><i class=\"k wait\"></i>wait to first output</li><li><i "
         "class=\"k gen\"></i>generation</li>"
         "<li><i class=\"k warm\"></i>warm-up</li><li><i class=\"k failed\"></i>failed</li>"
         "<li><i class=\"k timeout\"></i>timed out</li><li><i class=\"k "
         "cancelled\"></i>cancelled</li><li><i class=\"k steady\"></i>steady window of a "
         "lane</li></ul>"
         "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Request timeline\">"
      << canvas.finish() << "</div>";
  if (requests.size() < facts.requests.size()) {
    out << "<p class=\"note\">";
    out.text(count(static_cast<int64_t>(requests.size())) + " of " +
             count(static_cast<int64_t>(facts.requests.size())) +
             " requests are drawn, evenly chosen; failed ones first. All are in requests.jsonl.")
        << "</p>";
  }
  return out;
}

Html startup_chart(const Facts& facts) {
  const Json& phases = list_at(facts.results, {"startup", "phases"});
  double total = 0;
  for (const Json& phase : phases) total += number_at(phase, {"seconds"}).value_or(0);
  if (!(total > 0)) return {};
  constexpr double kWidth = 1000, kHeight = 62;
  const svg::Scale x = svg::Scale::linear({0, total}, {16, kWidth - 16});
  svg::Canvas canvas(kWidth, kHeight, "wide", "Start-up phases, " + seconds(total) + " in all");
  double from = 0;
  int index = 0;
  for (const Json& phase : phases) {
    const double length_s = number_at(phase, {"seconds"}).value_or(0);
    const std::string name = one_line(text_at(phase, {"name"}));
    const double left = x(from), width = x(from + length_s) - left;
    canvas.rect(left, 6, std::max(width - 1, 0.75), 26,
                index % 2 ? Markup("startup alt") : Markup("startup"),
                name + ": " + seconds(length_s));
    if (svg::label_width(name) + 10 < width)
      canvas.text(left + width / 2, 23, name, "on-bar", svg::Anchor::kMiddle);
    from += length_s;
    ++index;
  }
  const auto ticks = svg::time_ticks({0, total}, 8);
  svg::axis_bottom(canvas, x, 38, ticks, [&](double value) {
    return total < 1 ? svg::duration_label(value * 1000) : svg::time_label(value, ticks);
  });
  Html out;
  out << "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Start-up phases\">"
      << canvas.finish() << "</div>";
  return out;
}

}  // namespace anvil::report
