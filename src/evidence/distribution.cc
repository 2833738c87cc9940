#include "evidence/distribution.h"

#include <algorithm>

namespace anvil::evidence {

namespace {
// Rank ceil(q n / 100), from 1.
size_t nearest_rank(size_t n, size_t q) {
  return std::max<size_t>(1, (q * n + 99) / 100);
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

// Exact; a sum that no clock can produce wraps.
double sum_of(const std::vector<int64_t>& values) {
  uint64_t sum = 0;
  for (const int64_t value : values) sum += static_cast<uint64_t>(value);
  return static_cast<double>(static_cast<int64_t>(sum));
}

template <class T>
Json distribution_of(std::vector<T>& values, double divisor) {
  const size_t n = values.size();
  Json out{{"n", n},         {"min", nullptr},  {"p50", nullptr},
           {"p90", nullptr}, {"p95", nullptr},  {"p99", nullptr},
           {"max", nullptr}, {"mean", nullptr}, {"median_below_floor", nullptr}};
  if (n == 0) return out;
  const auto published = [divisor](T value) { return static_cast<double>(value) / divisor; };
  out["mean"] = sum_of(values) / static_cast<double>(n) / divisor;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  out["min"] = published(*least);
  out["max"] = published(*most);

  // Ranks rise, so each selection works on what lies above the one before.
  auto from = values.begin();
  const auto at_rank = [&](size_t q) {
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(nearest_rank(n, q) - 1);
    if (place >= from) {
      std::nth_element(from, place, values.end());
      from = place + 1;
    }
    return published(*place);
  };
  if (n < kFloorP50) out["median_below_floor"] = at_rank(50);
  if (n >= kFloorP50) out["p50"] = at_rank(50);
  if (n >= kFloorP90) out["p90"] = at_rank(90);
  if (n >= kFloorP95) out["p95"] = at_rank(95);
  if (n >= kFloorP99) out["p99"] = at_rank(99);
  return out;
}
}  // namespace

Json distribution(std::vector<double>& values) {
  return distribution_of(values, 1);
}

Json distribution_ms(std::vector<int64_t>& nanos) {
  return distribution_of(nanos, 1e6);
}

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto place =
      values.begin() + static_cast<std::ptrdiff_t>(nearest_rank(values.size(), 50) - 1);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

}  // namespace anvil::evidence
