#include "stats/distance.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "stats/check.h"
#include "stats/portable_math.h"

namespace anvil::stats {

namespace {
Result<std::vector<double>> rising(std::span<const double> values, std::string_view what) {
  TRY(finite(values, what));
  if (values.empty())
    return fail(Kind::kInvalidInput, Side::kInternal, std::string(what) + " has no values");
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// Share of all orders of the pooled sample whose two distribution functions come at least
// `distance` / (m n) apart. share(i, j) is that share among paths to (i, j); the last step came
// from (i-1, j) in i of i + j paths.
double share_of_paths(size_t m, size_t n, size_t distance) {
  const auto apart = [&](size_t i, size_t j) {
    const size_t left = i * n, right = j * m;
    return (left > right ? left - right : right - left) >= distance;
  };
  std::vector<double> share(n + 1, 0);
  for (size_t i = 0; i <= m; ++i)
    for (size_t j = 0; j <= n; ++j) {
      if (apart(i, j)) {
        share[j] = 1;
        continue;
      }
      if (i == 0 && j == 0) continue;
      const double from_i = i == 0 ? 0 : static_cast<double>(i) * share[j];
      const double from_j = j == 0 ? 0 : static_cast<double>(j) * share[j - 1];
      share[j] = (from_i + from_j) / static_cast<double>(i + j);
    }
  return share[n];
}

double limit_p(double d, double m, double n) {
  const double effective = std::sqrt(m * n / (m + n));
  const double lambda = (effective + 0.12 + 0.11 / effective) * d;
  if (lambda < 0.2) return 1;  // the series needs ever more terms and is 1 to all digits
  double sum = 0;
  for (int k = 1; k <= 100; ++k) sum += (k % 2 ? 2 : -2) * exp(-2.0 * k * k * lambda * lambda);
  return std::clamp(sum, 0.0, 1.0);
}
}  // namespace

Result<KolmogorovSmirnov> ks_two_sample(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> first = TRY(rising(a, "arm a"));
  const std::vector<double> second = TRY(rising(b, "arm b"));
  const size_t m = first.size(), n = second.size();
  size_t most = 0;  // of |i n - j m|
  for (size_t i = 0, j = 0; i < m && j < n;) {
    const double at = std::min(first[i], second[j]);
    while (i < m && first[i] == at) ++i;
    while (j < n && second[j] == at) ++j;
    const size_t left = i * n, right = j * m;
    most = std::max(most, left > right ? left - right : right - left);
  }
  KolmogorovSmirnov out;
  out.d = static_cast<double>(most) / static_cast<double>(m) / static_cast<double>(n);
  out.exact = m <= kMostPairs / n;
  out.p = out.exact ? share_of_paths(m, n, most)
                    : limit_p(out.d, static_cast<double>(m), static_cast<double>(n));
  return out;
}

Result<double> ks_to_exponential(std::span<const double> values) {
  const std::vector<double> sorted = TRY(rising(values, "inter-arrival times"));
  if (sorted.front() < 0)
    return fail(Kind::kInvalidInput, Side::kInternal, "a negative inter-arrival time");
  const double n = static_cast<double>(sorted.size());
  double sum = 0;
  for (const double value : sorted) sum += value;
  if (sum == 0) return 1.0;
  double most = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double expected = 1 - exp(-sorted[i] / (sum / n));
    most = std::max({most, std::fabs(static_cast<double>(i + 1) / n - expected),
                     std::fabs(expected - static_cast<double>(i) / n)});
  }
  return most;
}

Result<double> wasserstein1(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> first = TRY(rising(a, "arm a"));
  const std::vector<double> second = TRY(rising(b, "arm b"));
  const double m = static_cast<double>(first.size()), n = static_cast<double>(second.size());
  double area = 0, at = std::min(first[0], second[0]);
  for (size_t i = 0, j = 0; i < first.size() || j < second.size();) {
    const bool from_first = j == second.size() || (i < first.size() && first[i] <= second[j]);
    const double next = from_first ? first[i] : second[j];
    area += std::fabs(static_cast<double>(i) / m - static_cast<double>(j) / n) * (next - at);
    at = next;
    ++(from_first ? i : j);
  }
  return area;
}

Result<double> a12(std::span<const double> first, std::span<const double> second) {
  TRY(finite(first, "the first sample"));
  const std::vector<double> other = TRY(rising(second, "the second sample"));
  if (first.empty())
    return fail(Kind::kInvalidInput, Side::kInternal, "the first sample has no values");
  double halves = 0;
  for (const double value : first) {
    const auto [from, to] = std::equal_range(other.begin(), other.end(), value);
    halves += 2 * static_cast<double>(from - other.begin()) + static_cast<double>(to - from);
  }
  return halves / 2 / static_cast<double>(first.size()) / static_cast<double>(other.size());
}

}  // namespace anvil::stats
