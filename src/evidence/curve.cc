#include "evidence/curve.h"

#include <algorithm>
#include <cmath>

namespace anvil::evidence {

namespace {
// 0, 1/40 ... 39/40, then 14 points per decade of 1 - q down to one in a hundred thousand.
std::vector<double> make_quantiles() {
  std::vector<double> out;
  for (int i = 0; i < 40; ++i) out.push_back(i / 40.0);
  static constexpr double kSteps[] = {0.9, 0.8,  0.7, 0.6,  0.55, 0.5,  0.45,
                                      0.4, 0.35, 0.3, 0.25, 0.2,  0.15, 0.1};
  double scale = 0.025;
  for (int decade = 0; decade < 4; ++decade, scale /= 10)
    for (const double step : kSteps) out.push_back(1 - scale * step);
  out.push_back(1);
  return out;
}

template <class T>
Json curve_of(std::vector<T>& values, double divisor) {
  static const std::vector<double> kQuantiles = make_quantiles();
  if (values.empty()) return nullptr;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  Json out = Json::array();
  size_t before = n;
  for (const double q : kQuantiles) {
    const double rank = std::ceil(q * static_cast<double>(n) - 1e-9);
    const size_t index = rank < 1 ? 0 : std::min(static_cast<size_t>(rank), n) - 1;
    if (index == before) continue;
    before = index;
    // The share of values up to and with this one, so that the curve is the empirical one.
    out.push_back({static_cast<double>(index + 1) / static_cast<double>(n),
                   static_cast<double>(values[index]) / divisor});
  }
  return out;
}
}  // namespace

Json curve(std::vector<double>& values) {
  return curve_of(values, 1);
}

Json curve_ms(std::vector<int64_t>& nanos) {
  return curve_of(nanos, 1e6);
}

}  // namespace anvil::evidence
