#include "stats/percentile.h"

#include "stats/portable_math.h"

namespace anvil::stats {

std::optional<double> nearest_rank_value(std::span<const double> rising, PerMille q) {
  if (rising.empty()) return std::nullopt;
  return rising[nearest_rank(rising.size(), q) - 1];
}

size_t sample_floor(PerMille q, double confidence) {
  if (q >= 1000 || confidence >= 1) return kNever;
  const double below = q / 1000.0, above = (1000 - q) / 1000.0;
  const auto enough = [&](size_t n) {
    const double at_most_one =
        power(below, n) + static_cast<double>(n) * above * power(below, n - 1);
    return at_most_one < 1 - confidence;
  };
  size_t high = 2;
  while (!enough(high)) high *= 2;
  size_t low = high / 2;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

double median_in_place(std::span<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2) return *middle;
  const double below = *std::max_element(values.begin(), middle);
  return below + (*middle - below) / 2;
}

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  return median_in_place(values);
}

}  // namespace anvil::stats
