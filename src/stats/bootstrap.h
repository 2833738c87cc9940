#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"

namespace anvil::stats {

struct Interval {
  double low = 0, high = 0;
  double level = 0.95;
};

// Fewer would leave the ends of the interval to chance.
inline constexpr size_t kFewestResamples = 10'000;

struct BootstrapOptions {
  uint64_t seed = 0;
  size_t resamples = kFewestResamples;
  double level = 0.95;
};
// Refuses fewer than kFewestResamples, more than 10,000,000, and a level outside (0, 1).
Result<void> check(const BootstrapOptions& options);

// The percentile interval: with B values in rising order, floor(B (1 - level) / 2) are cut off at
// each end (Efron 1979). Needs at least one value.
Interval percentile_interval(std::span<const double> rising, double level);

// What is drawn together: the values of one pair of runs (or of one run; the other side stays
// empty). Requests inside a run share queue, cache and clocks, so they are never drawn one by one.
struct Block {
  std::vector<double> a, b;
};

struct RatioOfMedians {
  double median_a = 0, median_b = 0;
  double ratio = 0;  // median_b / median_a
  // Ratios of the resamples in rising order; empty with fewer than 2 blocks (or, drawn by arm,
  // fewer than 2 values of an arm).
  std::vector<double> resampled;

  // Percentile interval of the ratio; nothing without resamples.
  std::optional<Interval> interval(double level) const;
};

// Ratio of medians of two arms with a block bootstrap: whole blocks are drawn with replacement and
// the values of each arm pooled. A draw that leaves an arm without a value is drawn again. The same
// seed and blocks in the same order give the same bits. Medians are those of stats::median().
// Refuses values that are not finite and above 0, an arm without values, and bad options.
Result<RatioOfMedians> ratio_of_medians(std::span<const Block> blocks,
                                        const BootstrapOptions& options);
// The same for arms that are not paired: each arm's values are drawn on their own.
Result<RatioOfMedians> ratio_of_medians(std::span<const double> a, std::span<const double> b,
                                        const BootstrapOptions& options);

}  // namespace anvil::stats
