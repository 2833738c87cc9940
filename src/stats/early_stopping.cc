#include "stats/early_stopping.h"

#include "stats/special.h"

namespace anvil::stats {

namespace {
bool proves(size_t t, size_t n, PerMille q, double confidence) {
  return binomial_at_most(t, n, (1000 - q) / 1000.0) < 1 - confidence;
}
}  // namespace

double binomial_at_most(size_t t, size_t n, double rate) {
  if (t >= n) return 1;
  return incomplete_beta(static_cast<double>(n - t), static_cast<double>(t) + 1, 1 - rate);
}

std::optional<size_t> allowed_over(size_t n, PerMille q, double confidence) {
  if (!proves(0, n, q, confidence)) return std::nullopt;
  size_t low = 0, high = n;  // low proves, high (all of them over) does not
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    (proves(middle, n, q, confidence) ? low : high) = middle;
  }
  return low;
}

size_t samples_needed(size_t over, PerMille q, double confidence) {
  if (q >= 1000 || confidence >= 1) return kNever;
  size_t high = over + 1;
  while (!proves(over, high, q, confidence)) high *= 2;
  size_t low = over;  // as many as lie over: proves nothing
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    (proves(over, middle, q, confidence) ? high : low) = middle;
  }
  return high;
}

std::optional<size_t> upper_bound_rank(size_t n, PerMille q, double confidence) {
  const auto over = allowed_over(n, q, confidence);
  if (!over) return std::nullopt;
  return n - *over;
}

}  // namespace anvil::stats
