#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"

namespace anvil::stats {

// Hodges-Lehmann shift of paired differences: the median of all Walsh averages (d_i + d_j) / 2,
// i <= j, in the unit of the values (Hodges and Lehmann 1963). Refuses no values, values that are
// not finite, and more than kMostPairs averages.
Result<double> hodges_lehmann(std::span<const double> differences);
// Of two samples: the median of all b_j - a_i, in the unit of the values.
Result<double> hodges_lehmann(std::span<const double> a, std::span<const double> b);

struct SignedRank {
  size_t pairs = 0;
  size_t zeros = 0;   // differences of exactly 0, which are left out (Wilcoxon's own rule)
  double w_plus = 0;  // sum of the ranks of positive differences
  double w_minus = 0;
  double p_two_sided = 1;
  // Whether this many non-zero pairs could give p < alpha at all: 2 / 2^n < alpha. At 0.05 that
  // needs 6 pairs; with fewer the test cannot reject, which says nothing about the effect.
  bool can_reject = false;
};

// Exact Wilcoxon signed-rank test of paired differences against a median of 0. Tied absolute values
// share their mean rank; the distribution is the exact one given those ranks (every sign equally
// likely), not the tabulated one without ties. p = min(1, 2 P(at least as extreme)). All zeros:
// p = 1. Refuses values that are not finite and more than 300 non-zero differences.
// Source: Wilcoxon 1945; Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3.1.
Result<SignedRank> wilcoxon_signed_rank(std::span<const double> differences, double alpha = 0.05);

struct RankSum {
  double u = 0;  // pairs (a, b) with b > a, ties as one half
  double p_two_sided = 1;
};

// Exact Mann-Whitney test of two independent samples: the distribution of the rank sum given the
// (mean) ranks. p = min(1, 2 P(at least as extreme)). Refuses an empty sample, values that are not
// finite and more than 100 values together. Source: Mann and Whitney 1947.
Result<RankSum> mann_whitney(std::span<const double> a, std::span<const double> b);

}  // namespace anvil::stats
