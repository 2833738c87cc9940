#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "stats/bootstrap.h"

namespace anvil::stats {

// Holm's step-down adjustment (1979) of p values of one family, in their order: reject where the
// adjusted value is at most alpha. Valid under any dependence. Refuses values outside [0, 1].
Result<std::vector<double>> holm(std::span<const double> p);

// Equivalence of a ratio by two one-sided tests: at level alpha they reject exactly when the
// 1 - 2 alpha interval (0.90 for 5 %) lies inside the margin (Schuirmann 1987). The margin of a
// ratio is symmetric in its logarithm: 1 / (1 + margin) < ratio < 1 + margin.
struct Equivalence {
  double low = 0, high = 0;  // the bounds
  bool equivalent = false;
};
// `interval` at level 1 - 2 alpha. Refuses a margin that is not finite and above 0.
Result<Equivalence> tost(const Interval& interval, double margin);

// What two arms that are the same would have shown.
struct NoiseFloor {
  size_t ratios = 0;
  double typical = 1;  // median of max(r, 1 / r)
  double largest = 1;
  // Smallest max(ratio, 1 / ratio) of medians over `pairs` pairs that such noise reaches in less
  // than 1 - level of all campaigns.
  double floor = 1;
};
// From ratios of two runs of one arm (control against control), whose logarithms have mean 0 and
// root mean square s: floor = exp(t sqrt(pi / 2) s / sqrt(pairs)), with t the two-sided Student
// quantile at as many degrees of freedom as there are ratios, and sqrt(pi / 2) the standard error
// of a median over that of a mean (normal noise; Kendall and Stuart, 10.10). Few controls make a
// high floor. Nothing for no ratios or no pairs; refuses ratios that are not finite and above 0.
Result<std::optional<NoiseFloor>> noise_floor(std::span<const double> ratios, size_t pairs,
                                              double level = 0.95);

// Smallest true ratio (above 1) that a paired design of n pairs finds with this power at two-sided
// alpha, from the standard deviation of the logarithms of the pair ratios:
// exp((t_{1 - alpha/2, n - 1} + t_{power, n - 1}) sd / sqrt(n)). Source: Bloom 1995, Minimum
// detectable effects, Evaluation Review 19(5). Nothing for n < 2 or an sd that is negative or not
// finite.
std::optional<double> minimum_detectable_ratio(double sd_log, size_t n, double alpha = 0.05,
                                               double power = 0.80);

// Sample standard deviation (n - 1); nothing for fewer than 2 values.
std::optional<double> standard_deviation(std::span<const double> values);

}  // namespace anvil::stats
