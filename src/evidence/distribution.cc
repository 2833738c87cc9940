#include "evidence/distribution.h"

#include <algorithm>
#include <array>

#include "stats/percentile.h"

namespace anvil::evidence {

namespace {
constexpr stats::PerMille kMedian = 500;

struct Published {
  const char* name;
  stats::PerMille percentile;
  size_t floor;
};
const std::array<Published, 4>& floors() {
  static const std::array<Published, 4> kFloors{{{"p50", kMedian, stats::sample_floor(kMedian)},
                                                 {"p90", 900, stats::sample_floor(900)},
                                                 {"p95", 950, stats::sample_floor(950)},
                                                 {"p99", 990, stats::sample_floor(990)}}};
  return kFloors;
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

  stats::RisingPercentiles<T> percentiles(values);
  const auto at = [&](stats::PerMille q) { return published(percentiles.at(q)); };
  for (const Published& each : floors()) {
    if (n >= each.floor)
      out[each.name] = at(each.percentile);
    else if (each.percentile == kMedian)
      out["median_below_floor"] = at(kMedian);
  }
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
  return stats::RisingPercentiles<double>(values).at(kMedian);
}

}  // namespace anvil::evidence
