#include "stats/decision.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "stats/check.h"
#include "stats/percentile.h"
#include "stats/portable_math.h"
#include "stats/special.h"

namespace anvil::stats {

Result<std::vector<double>> holm(std::span<const double> p) {
  for (const double value : p)
    if (!(value >= 0 && value <= 1))
      return fail(Kind::kInvalidInput, Side::kInternal,
                  "a p value of " + std::to_string(value) + " is not between 0 and 1");
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return p[i] < p[j]; });
  std::vector<double> adjusted(p.size());
  double so_far = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    so_far = std::max(so_far, std::min(1.0, static_cast<double>(p.size() - k) * p[order[k]]));
    adjusted[order[k]] = so_far;
  }
  return adjusted;
}

Result<Equivalence> tost(const Interval& interval, double margin) {
  if (!(std::isfinite(margin) && margin > 0))
    return fail(Kind::kInvalidInput, Side::kClient,
                "an equivalence margin of " + std::to_string(margin),
                "write the share that would not matter, such as 0.05");
  Equivalence out{1 / (1 + margin), 1 + margin, false};
  out.equivalent = interval.low > out.low && interval.high < out.high;
  return out;
}

Result<std::optional<NoiseFloor>> noise_floor(std::span<const double> ratios, size_t pairs,
                                              double level) {
  TRY(positive(ratios, "control ratios"));
  if (ratios.empty() || pairs == 0) return std::nullopt;
  std::vector<double> folded;
  double squares = 0;
  for (const double ratio : ratios) {
    folded.push_back(std::max(ratio, 1 / ratio));
    squares += log(ratio) * log(ratio);
  }
  NoiseFloor out;
  out.ratios = ratios.size();
  out.largest = *std::max_element(folded.begin(), folded.end());
  out.typical = median_in_place(folded);
  constexpr double kMedianOverMean = 1.2533141373155002512;  // sqrt(pi / 2)
  const double count = static_cast<double>(ratios.size());
  const double t = student_t_quantile(1 - (1 - level) / 2, count);
  out.floor =
      exp(t * kMedianOverMean * std::sqrt(squares / count) / std::sqrt(static_cast<double>(pairs)));
  return out;
}

std::optional<double> minimum_detectable_ratio(double sd_log, size_t n, double alpha,
                                               double power) {
  if (n < 2 || !std::isfinite(sd_log) || sd_log < 0) return std::nullopt;
  const double df = static_cast<double>(n - 1);
  const double multiple = student_t_quantile(1 - alpha / 2, df) + student_t_quantile(power, df);
  return exp(multiple * sd_log / std::sqrt(static_cast<double>(n)));
}

std::optional<double> standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / n;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (n - 1));
}

}  // namespace anvil::stats
