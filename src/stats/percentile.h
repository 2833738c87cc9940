#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace anvil::stats {

// A percentile in thousandths: 500 is p50, 999 is p99.9. Whole numbers, because 0.95 * 20 is not 19
// in binary.
using PerMille = unsigned;

// Nearest rank of a percentile among n values, from 1: ceil(q n), at least 1. Needs n > 0.
constexpr size_t nearest_rank(size_t n, PerMille q) {
  return std::max<size_t>(1, (q * n + 999) / 1000);
}
// The value at that rank of values in rising order; nothing of none.
std::optional<double> nearest_rank_value(std::span<const double> rising, PerMille q);

// Fewest values for which a percentile may be published at this confidence: the smallest n for
// which the early-stopping rule (stats/early_stopping.h) can tell the percentile apart when one
// value lies above it, P(Binomial(n, 1 - q) <= 1) < 1 - confidence. At 0.99: p50 11, p90 64, p95
// 130, p99 662, p99.9 6,636. Source: MLPerf LoadGen, early stopping. kNever for q = 1000
// and for a confidence of 1.
inline constexpr size_t kNever = std::numeric_limits<size_t>::max();
size_t sample_floor(PerMille q, double confidence = 0.99);

// Percentiles of values in any order, which it reorders: asked in rising order, each selection
// works on what lies above the one before. Keeps a reference; needs at least one value.
template <class T>
class RisingPercentiles {
 public:
  explicit RisingPercentiles(std::vector<T>& values) : values_(values), from_(values.begin()) {}
  // Nearest rank; q not below that of the call before.
  T at(PerMille q) {
    const auto place =
        values_.begin() + static_cast<std::ptrdiff_t>(nearest_rank(values_.size(), q) - 1);
    if (place >= from_) {
      std::nth_element(from_, place, values_.end());
      from_ = place + 1;
    }
    return *place;
  }

 private:
  std::vector<T>& values_;
  typename std::vector<T>::iterator from_;
};

// The middle value, or the mean of the two middle ones: for estimates from few runs, where the
// nearest rank would always take the lower one. Reorders the values, which are at least one and
// hold no NaN.
double median_in_place(std::span<double> values);
// The same of a copy; nothing of none.
std::optional<double> median(std::vector<double> values);

}  // namespace anvil::stats
