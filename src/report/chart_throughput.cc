#include <algorithm>
#include <map>

#include "report/charts.h"
#include "report/json_read.h"
#include "report/labels.h"
#include "report/load_view.h"
#include "report/svg.h"
#include "report/text.h"
#include "report/view.h"

namespace anvil::report {

namespace {

constexpr double kWidth = 480, kHeight = 264, kLeft = 58, kRight = 462, kTop = 14, kBottom = 222;
constexpr Markup kLines[] = {"curve s1", "curve s2", "curve s3", "curve s4"};
constexpr Markup kDots[] = {"dot s1", "dot s2", "dot s3", "dot s4"};
constexpr Markup kOpenDots[] = {"dot open s1", "dot open s2", "dot open s3", "dot open s4"};
constexpr Markup kKeys[] = {"k l1", "k l2", "k l3", "k l4"};
constexpr size_t kColours = 4;

struct Place {
  const Json* lane = nullptr;
  double x = 0, y = 0, order = 0;
};

// Lanes that differ in their load alone are one line.
using Families = std::map<std::string, std::vector<Place>>;
// The colour of each line, the same in every panel.
using Colours = std::map<std::string, size_t>;

std::string family_of(const Json& lane) {
  const auto tokens = [&](const char* key) {
    const auto n = integer_at(lane, {key});
    return n ? count(*n) : std::string("any");
  };
  std::string kind = text_at(lane, {"load", "kind"});
  if (kind.empty()) kind = "closed";
  return one_line(kind) + ", " + state_words(one_line(text_at(lane, {"cache_state"}))) + ", " +
         tokens("prompt_tokens_target") + " \xE2\x86\x92 " + tokens("output_tokens_target");
}

struct Axis {
  bool tokens = true;  // else requests per second
  const char* title() const { return tokens ? "output, tok/s" : "requests per second"; }
  std::optional<double> of(const Json& lane) const {
    return tokens ? throughput_of(lane) : number_at(lane, {"steady", "requests_per_s"});
  }
};

Families families(const Json& lanes, const Axis& axis, const char* metric) {
  Families out;
  for (const Json& lane : lanes) {
    const auto x = axis.of(lane);
    const Figure y = figure_of(at(lane, {metric}), "p50");
    if (!x || *x <= 0 || (y.kind != Figure::Kind::kValue && y.kind != Figure::Kind::kBelowFloor) ||
        y.value <= 0)
      continue;
    double order = number_at(lane, {"load", "rate_target"}).value_or(0);
    if (order <= 0) order = number_at(lane, {"concurrency"}).value_or(0);
    out[family_of(lane)].push_back({&lane, *x, y.value, order});
  }
  for (auto& [name, places] : out)
    std::stable_sort(places.begin(), places.end(),
                     [](const Place& a, const Place& b) { return a.order < b.order; });
  return out;
}

// All objectives of the lane hold; nothing if it declares none.
std::optional<bool> holds(const Json& lane) {
  const Json& objectives = list_at(lane, {"goodput", "objectives"});
  if (objectives.empty()) return std::nullopt;
  for (const Json& each : objectives)
    if (!flag_at(each, {"holds"}).value_or(false)) return false;
  return true;
}

// The lane with the most goodput among those that hold; no knee where none of them misses.
const Json* knee_of(const Families& all) {
  const Json* best = nullptr;
  double most = 0;
  bool missed = false;
  for (const auto& [name, places] : all)
    for (const Place& place : places) {
      const auto good = holds(*place.lane);
      missed = missed || !good.value_or(true);
      const double rate = number_at(*place.lane, {"goodput", "req_s"}).value_or(0);
      if (good.value_or(false) && rate > most) best = place.lane, most = rate;
    }
  return missed ? best : nullptr;
}

std::string load_label(const Json& lane) {
  const std::string kind = text_at(lane, {"load", "kind"});
  if (const auto rate = number_at(lane, {"load", "rate_target"}); rate)
    return rate_words(*rate) + "/s";
  const auto streams = integer_at(lane, {"concurrency"});
  return streams ? "c" + std::to_string(*streams) : ellipsis(one_line(text_at(lane, {"id"})), 12);
}

Html panel(const Families& all, const Colours& colours, const Axis& axis, const char* metric) {
  double x_low = 1e300, x_high = 0, y_low = 1e300, y_high = 0;
  for (const auto& [name, places] : all)
    for (const Place& place : places) {
      x_low = std::min(x_low, place.x), x_high = std::max(x_high, place.x);
      y_low = std::min(y_low, place.y), y_high = std::max(y_high, place.y);
    }
  // One objective of this metric that all lanes share is a region; different ones would each be
  // another's.
  // Not an optional: g++ 12 takes its value for uninitialised when it optimises.
  bool limited = false;
  double limit = 0;
  std::string objective;
  bool same = true;
  for (const auto& [name, places] : all)
    for (const Place& place : places)
      for (const Json& each : list_at(*place.lane, {"goodput", "objectives"})) {
        const auto value = number_at(each, {"threshold"});
        if (text_at(each, {"metric"}) != metric || !value || *value <= 0) continue;
        same = same && (!limited || limit == *value);
        limited = true;
        limit = *value;
        objective = objective_words(each);
      }
  if (!same) limited = false;
  if (limited) y_high = std::max(y_high, limit), y_low = std::min(y_low, limit);
  const svg::Range x_range = svg::nice_linear(0, x_high * 1.06, true, 5);
  const bool logarithmic = y_high / y_low > 8;
  const svg::Range y_range =
      logarithmic ? svg::nice_log(y_low, y_high) : svg::nice_linear(0, y_high * 1.05, true, 5);
  const svg::Scale x = svg::Scale::linear(x_range, {kLeft, kRight});
  const svg::Scale y = logarithmic ? svg::Scale::logarithmic(y_range, {kBottom, kTop})
                                   : svg::Scale::linear(y_range, {kBottom, kTop});
  svg::Canvas canvas(kWidth, kHeight, "panel",
                     metric_words(metric) + " p50 against " + axis.title() + " of each lane");
  Labels labels({kLeft, kRight}, {kTop, kBottom});
  if (limited) {
    canvas.rect(kLeft, y(limit), kRight - kLeft, kBottom - y(limit), "region",
                "within " + objective);
    canvas.line(kLeft, y(limit), kRight, y(limit), "region-edge");
  }
  const auto y_ticks = logarithmic ? svg::log_ticks(y_range, 7) : svg::linear_ticks(y_range, 5);
  svg::axis_left(canvas, y, kLeft, kRight, y_ticks, svg::duration_label);
  const auto x_ticks = svg::linear_ticks(x_range, 5);
  for (const double tick : x_ticks) canvas.line(x(tick), kTop, x(tick), kBottom, "grid");
  svg::axis_bottom(canvas, x, kBottom, x_ticks,
                   [&](double value) { return svg::tick_label(value, x_ticks); });
  canvas.text((kLeft + kRight) / 2, kBottom + 32, axis.title(), "tick", svg::Anchor::kMiddle);
  const Json* knee = knee_of(all);
  for (const auto& [name, places] : all)
    for (const Place& place : places) labels.occupy(x(place.x), y(place.y), 5);
  for (const auto& [name, places] : all) {
    const size_t colour = colours.at(name);
    std::vector<svg::Point> line;
    for (const Place& place : places) line.emplace_back(x(place.x), y(place.y));
    if (line.size() > 1) canvas.path(line, kLines[colour]);
    for (const Place& place : places) {
      const bool open = !holds(*place.lane).value_or(true);
      if (place.lane == knee) canvas.circle(x(place.x), y(place.y), 8, "knee");
      canvas.circle(
          x(place.x), y(place.y), 4, open ? kOpenDots[colour] : kDots[colour],
          "lane " + one_line(text_at(*place.lane, {"id"})) + ", " + load_words(*place.lane) + "\n" +
              figure(place.x) + (axis.tokens ? " tok/s" : " requests/s") + ", " +
              metric_words(metric) + " p50 " + milliseconds(place.y) +
              (holds(*place.lane) ? open ? "\nmisses its objectives" : "\nholds its objectives"
                                  : ""));
    }
  }
  for (const auto& [name, places] : all)
    for (const Place& place : places)
      labels.put(canvas, x(place.x), y(place.y),
                 load_label(*place.lane) + (place.lane == knee ? ", knee" : ""), "band halo");
  if (limited) labels.put_along(canvas, y(limit), objective, "tick halo");
  Html out;
  out << "<figure><figcaption>";
  out.text(metric_words(metric) + " p50 against " + axis.title())
      << "</figcaption>" << canvas.finish() << "</figure>";
  return out;
}

size_t size_of(const Families& all) {
  size_t n = 0;
  for (const auto& [name, places] : all) n += places.size();
  return n;
}

}  // namespace

Html throughput_charts(const Facts& facts) {
  const Json& lanes = list_at(facts.results, {"lanes"});
  Axis axis;
  axis.tokens = std::any_of(lanes.begin(), lanes.end(),
                            [](const Json& lane) { return throughput_of(lane).has_value(); });
  const Families ttfo = families(lanes, axis, "ttfo_ms"), tpot = families(lanes, axis, "tpot_ms");
  Colours colours;
  bool declared = false;
  for (const Families* all : {&ttfo, &tpot})
    for (const auto& [name, places] : *all) {
      if (size_of(*all) < 2) continue;
      colours.emplace(name, colours.size() % kColours);
      for (const Place& place : places) declared = declared || holds(*place.lane).has_value();
    }
  if (colours.empty()) return {};
  Html panels;
  if (size_of(ttfo) >= 2) panels << panel(ttfo, colours, axis, "ttfo_ms");
  if (size_of(tpot) >= 2) panels << panel(tpot, colours, axis, "tpot_ms");
  Html out;
  out << "<ul class=\"legend\">";
  for (const auto& [name, colour] : colours) {
    out << "<li><i";
    out.attribute("class", kKeys[colour].text) << "></i>";
    out.text(name) << "</li>";
  }
  if (declared)
    out << "<li><i class=\"k within\"></i>within the objective</li><li><i class=\"k "
           "hollow\"></i>misses an objective</li>";
  out << "</ul><div class=\"panels two\">" << panels << "</div>";
  return out;
}

}  // namespace anvil::report
