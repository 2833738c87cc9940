#pragma once

#include <span>

#include "base/result.h"

namespace anvil::stats {

struct KolmogorovSmirnov {
  double d = 0;  // largest distance of the two empirical distributions, 0 .. 1
  double p = 1;  // two-sided
  // Counted over all orders of the pooled sample (up to kMostPairs of m n), else the limit
  // distribution with Stephens' correction. With ties the exact p is conservative.
  bool exact = true;
};

// Two-sample Kolmogorov-Smirnov test. Assumes independent values: requests of one run are not, so
// between runs use it on run-level values or read d alone. Refuses an empty sample and values that
// are not finite. Source: Hodges 1958 (counting paths); Stephens 1970.
Result<KolmogorovSmirnov> ks_two_sample(std::span<const double> a, std::span<const double> b);

// Distance of a sample to the exponential distribution of its own mean, 0 .. 1: for inter-arrival
// times of a plan that should be Poisson. No p value, since the mean is estimated. Refuses an empty
// sample and values that are negative or not finite.
Result<double> ks_to_exponential(std::span<const double> values);

// Wasserstein-1 (earth mover's) distance of two empirical distributions, in the unit of the values:
// the area between their distribution functions. Refuses as above.
Result<double> wasserstein1(std::span<const double> a, std::span<const double> b);

// Vargha and Delaney's A12 (2000): probability that a value of `first` is larger than one of
// `second`, ties as one half; 0.5 is no difference. Refuses as above.
Result<double> a12(std::span<const double> first, std::span<const double> second);

}  // namespace anvil::stats
