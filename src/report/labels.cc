#include "report/labels.h"

#include <algorithm>

namespace anvil::report {

namespace {
constexpr double kAscent = 9.5, kDescent = 3, kAway = 9;
}

void Labels::occupy(double x, double y, double radius) {
  taken_.push_back({x - radius, y - radius, x + radius, y + radius});
}

bool Labels::take(const Box& box) {
  if (box.left < x_.low || box.right > x_.high || box.top < y_.low || box.bottom > y_.high)
    return false;
  const bool free = std::none_of(taken_.begin(), taken_.end(), [&](const Box& other) {
    return box.left < other.right && other.left < box.right && box.top < other.bottom &&
           other.top < box.bottom;
  });
  if (free) taken_.push_back(box);
  return free;
}

void Labels::put(svg::Canvas& canvas, double x, double y, std::string_view words, Markup classes) {
  const double width = svg::label_width(words);
  const struct {
    double x, y;
    svg::Anchor anchor;
  } places[] = {{x + kAway, y + 4, svg::Anchor::kStart},
                {x, y - kAway, svg::Anchor::kMiddle},
                {x, y + kAway + kAscent, svg::Anchor::kMiddle},
                {x - kAway, y + 4, svg::Anchor::kEnd}};
  for (const auto& place : places) {
    const double left = place.anchor == svg::Anchor::kStart ? place.x
                        : place.anchor == svg::Anchor::kEnd ? place.x - width
                                                            : place.x - width / 2;
    if (!take({left, place.y - kAscent, left + width, place.y + kDescent})) continue;
    canvas.text(place.x, place.y, words, classes, place.anchor);
    return;
  }
}

void Labels::put_along(svg::Canvas& canvas, double y, std::string_view words, Markup classes) {
  const double width = svg::label_width(words);
  for (const double left : {x_.high - 4 - width, x_.low + 4})
    for (const double base : {y - 5, y + kAscent + 4}) {
      if (!take({left, base - kAscent, left + width, base + kDescent})) continue;
      canvas.text(left, base, words, classes);
      return;
    }
}

}  // namespace anvil::report
