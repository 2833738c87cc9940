#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "stats/bootstrap.h"

namespace anvil::stats {

struct BatchMeans {
  size_t batches = 0;
  size_t per_batch = 0;
  size_t dropped = 0;  // values at the front that fill no batch
  double mean = 0;
  double standard_error = 0;
  Interval interval;
  // Of neighbouring batch means: well above 0 says that the batches are too short.
  double lag1_correlation = 0;
};

// Mean of an autocorrelated series in order of time with Student's interval over the means of equal
// batches (Conway 1963; Law, Simulation Modeling and Analysis, 9.5.3). n mod batches values at the
// front are dropped. Refuses fewer than 2 batches, fewer values than batches, and values that are
// not finite. All values equal: no error, no correlation.
Result<BatchMeans> batch_means(std::span<const double> values, size_t batches = 20,
                               double level = 0.95);

struct Slope {
  double slope = 0;  // unit of y per unit of x
  double intercept = 0;
  double standard_error = 0;  // of the slope
  Interval interval;          // of the slope
  double p_two_sided = 1;     // against a slope of 0
};

// Least squares of y over x with Student's interval at n - 2 degrees of freedom. Assumes
// independent residuals: give it batch means of an autocorrelated series. An exact line has
// p = 0 (p = 1 if it is level). Refuses fewer than 3 points, unequal lengths, equal x, values that
// are not finite.
Result<Slope> linear_slope(std::span<const double> x, std::span<const double> y,
                           double level = 0.95);

enum class Steadiness { kSteady, kDrifting, kUndecided };

struct SteadyState {
  Steadiness verdict = Steadiness::kUndecided;
  double drift = 0;   // slope times the width of x, as a share of the mean of y
  Interval interval;  // of the drift
  Slope slope;
};

// Whether a series is steady over its window: its drift from the first to the last x, as a share
// of the mean, lies within +/- most_drift with its whole interval (steady), outside with its whole
// interval (drifting), or neither can be said. Refuses what linear_slope() refuses and a mean of 0.
Result<SteadyState> steady_state(std::span<const double> x, std::span<const double> y,
                                 double most_drift = 0.05, double level = 0.95);

}  // namespace anvil::stats
