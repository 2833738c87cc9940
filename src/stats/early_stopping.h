#pragma once

#include <cstddef>
#include <optional>

#include "stats/percentile.h"

namespace anvil::stats {

// May a percentile be claimed from these samples? MLPerf LoadGen's early-stopping rule: with n
// samples of which t lie over a limit, the claim "at most 1 - q of all lie over it" holds at this
// confidence if P(Binomial(n, 1 - q) <= t) < 1 - confidence, that is, if so few would be unlikely
// were the claim just false.

// P(Binomial(n, rate) <= t); 1 for t >= n. 0 <= rate <= 1.
double binomial_at_most(size_t t, size_t n, double rate);

// Most samples of n that may lie over the limit; nothing if even none over it proves nothing.
std::optional<size_t> allowed_over(size_t n, PerMille q, double confidence = 0.99);

// Fewest samples with which `over` of them over the limit still pass; kNever for q = 1000 and for a
// confidence of 1.
size_t samples_needed(size_t over, PerMille q, double confidence = 0.99);

// Rank (from 1) among n values in rising order of an upper confidence bound of the percentile: the
// value that at most allowed_over() values exceed. Distribution-free. Nothing for too few values.
std::optional<size_t> upper_bound_rank(size_t n, PerMille q, double confidence = 0.99);

}  // namespace anvil::stats
