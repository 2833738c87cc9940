#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "report/charts.h"
#include "report/json_read.h"
#include "report/svg.h"
#include "report/text.h"

namespace anvil::report {

namespace {

constexpr double kWidth = 400, kHeight = 214, kLeft = 46, kRight = 388, kTop = 18, kBottom = 172;
constexpr size_t kMostBars = 12;

struct Bar {
  std::string label, tip;
  double share = 0;
};

std::string percent(double share) {
  const double value = share * 100;
  return fixed(value, value > 0 && value < 9.95 ? 1 : 0) + " %";
}

Html bars_chart(const std::vector<Bar>& bars, const std::string& label, std::string_view below) {
  const svg::Scale y = svg::Scale::linear({0, 1}, {kBottom, kTop});
  svg::Canvas canvas(kWidth, kHeight, "panel", label);
  svg::axis_left(canvas, y, kLeft, kRight, {0, 0.25, 0.5, 0.75, 1},
                 [](double value) { return fixed(value * 100, 0) + " %"; });
  const double step = (kRight - kLeft) / static_cast<double>(std::max<size_t>(bars.size(), 4));
  for (size_t i = 0; i < bars.size(); ++i) {
    const double left = kLeft + static_cast<double>(i) * step, middle = left + step / 2;
    const double top = y(std::clamp(bars[i].share, 0.0, 1.0));
    canvas.rect(left + step * 0.15, top, step * 0.7, kBottom - top, "column", bars[i].tip);
    const std::string words = percent(bars[i].share);
    if (svg::label_width(words) < step)
      canvas.text(middle, top - 4, words, "tick", svg::Anchor::kMiddle);
    if (svg::label_width(bars[i].label) < step)
      canvas.text(middle, kBottom + 16, bars[i].label, "tick", svg::Anchor::kMiddle);
  }
  canvas.line(kLeft, kBottom, kRight, kBottom, "axis");
  canvas.text((kLeft + kRight) / 2, kBottom + 34, below, "tick", svg::Anchor::kMiddle);
  return canvas.finish();
}

}  // namespace

Html tokens_per_chunk_chart(const Json& lane) {
  const Json& counts = at(lane, {"tokens_per_chunk"});
  if (!counts.is_object()) return {};
  std::vector<std::pair<int64_t, double>> known;
  double unknown = 0, all = 0;
  for (const auto& [key, n] : counts.items()) {
    if (!n.is_number() || n.get<double>() < 0) continue;
    all += n.get<double>();
    if (const auto tokens = base::parse_int(key))
      known.emplace_back(*tokens, n.get<double>());
    else
      unknown += n.get<double>();
  }
  // One bar alone is a sentence, which stands among the lane's facts.
  if (known.empty() || counts.size() < 2 || !(all > 0)) return {};
  std::sort(known.begin(), known.end());
  std::vector<Bar> bars;
  const size_t room = unknown > 0 ? kMostBars - 1 : kMostBars;
  for (size_t i = 0; i < known.size(); ++i) {
    const bool rest = i + 1 == room && known.size() > room;
    double n = known[i].second;
    if (rest)
      for (size_t j = i + 1; j < known.size(); ++j) n += known[j].second;
    const std::string label = (rest ? "\xE2\x89\xA5" : "") + std::to_string(known[i].first);
    bars.push_back({label,
                    count(static_cast<int64_t>(n)) + " events with " + label +
                        (label == "1" ? " token" : " tokens"),
                    n / all});
    if (rest) break;
  }
  if (unknown > 0)
    bars.push_back(
        {"?", count(static_cast<int64_t>(unknown)) + " events without a count", unknown / all});
  return bars_chart(bars,
                    "Tokens in each output event of lane " + one_line(text_at(lane, {"id"})) +
                        ", share of events",
                    "tokens in the event");
}

Html acceptance_chart(const Json& lane) {
  std::vector<Bar> bars;
  for (const Json& share : list_at(lane, {"counters", "acceptance_by_position"})) {
    if (bars.size() == kMostBars) break;
    const std::string place = std::to_string(bars.size() + 1);
    if (share.is_number())
      bars.push_back({place,
                      "position " + place + ": " + percent(share.get<double>()) + " accepted",
                      share.get<double>()});
    else
      bars.push_back({place, "position " + place + ": none", 0});
  }
  if (bars.empty()) return {};
  return bars_chart(
      bars,
      "Accepted draft tokens by position in the draft, lane " + one_line(text_at(lane, {"id"})),
      "position in the draft");
}

}  // namespace anvil::report
