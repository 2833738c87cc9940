#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace anvil::measure {

// How the gaps between arrivals vary.
enum class ArrivalProcess { kConstant, kPoisson, kGamma };

// A part of a rate profile: from `rate` to `to_rate` in a straight line.
struct RateStep {
  double rate = 0;     // requests/s
  double to_rate = 0;  // requests/s
  double seconds = 0;
};

// When requests arrive. Equal specs give equal moments on every machine.
struct ArrivalSpec {
  ArrivalProcess process = ArrivalProcess::kPoisson;
  double burstiness = 1;        // shape of gamma gaps
  std::vector<RateStep> steps;  // the profile; the last one goes on for ever when there is no end
  std::optional<int64_t> count;
  std::optional<double> duration_s;  // arrivals at or after it are left out
  uint64_t seed = 0;
};

// A profile of one rate.
std::vector<RateStep> steady_rate(double rate);

// Moments in rising order, since the start of the lane. At least one of `count`, `duration_s` must
// be given, and every step must last (seconds > 0) at a rate of 0 or more.
//
// Gaps are drawn with mean 1 (constant: 1; Poisson: exponential; gamma: shape `burstiness`, so that
// their coefficient of variation is 1 / sqrt(burstiness)) and summed up; the k-th sum is the
// expected number of arrivals up to the k-th moment, which the rate profile turns into time. Within
// ramps this is the time-rescaling theorem for inhomogeneous processes. Constant arrivals begin at
// 0, the others after their first gap. Numbers come from stats::Random(seed).
std::vector<Nanos> arrivals(const ArrivalSpec& spec);

// {"count","span_s","rate","gap_cv"}: what a list of moments really is; null where undefined.
Json describe_arrivals(const std::vector<Nanos>& moments);

}  // namespace anvil::measure
