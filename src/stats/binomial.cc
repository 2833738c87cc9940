#include "stats/binomial.h"

#include <algorithm>
#include <string>

#include "stats/random.h"
#include "stats/special.h"

namespace anvil::stats {

std::optional<double> rule_of_three(size_t n) {
  if (n == 0) return std::nullopt;
  return std::min(1.0, 3.0 / static_cast<double>(n));
}

Result<Interval> clopper_pearson(size_t successes, size_t n, double level) {
  if (n == 0 || successes > n)
    return fail(
        Kind::kInvalidInput, Side::kInternal,
        std::to_string(successes) + " successes of " + std::to_string(n) + " trials have no rate");
  const double tail = (1 - level) / 2;
  const double passed = static_cast<double>(successes);
  const double failed = static_cast<double>(n - successes);
  return Interval{successes == 0 ? 0 : incomplete_beta_inverse(passed, failed + 1, tail),
                  successes == n ? 1 : incomplete_beta_inverse(passed + 1, failed, 1 - tail),
                  level};
}

Result<PassRate> clustered_pass_rate(std::span<const Item> items, const BootstrapOptions& options) {
  TRY(check(options));
  PassRate out;
  out.items = items.size();
  bool all_same = true;
  for (const Item& item : items) {
    if (item.attempts == 0 || item.passes > item.attempts)
      return fail(Kind::kInvalidInput, Side::kInternal,
                  "an item with " + std::to_string(item.passes) + " passes of " +
                      std::to_string(item.attempts) + " attempts");
    out.attempts += item.attempts;
    out.passes += item.passes;
  }
  if (items.empty())
    return fail(Kind::kInvalidInput, Side::kInternal, "no items, so there is no pass rate");
  out.rate = static_cast<double>(out.passes) / static_cast<double>(out.attempts);
  all_same = out.passes == 0 || out.passes == out.attempts;
  if (items.size() < 2) return out;
  if (all_same) {
    out.exact_over_items = true;
    out.interval = TRY(clopper_pearson(out.passes ? items.size() : 0, items.size(), options.level));
    return out;
  }
  Random random(options.seed);
  std::vector<double> rates(options.resamples);
  for (double& rate : rates) {
    size_t passes = 0, attempts = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      const Item& item = items[random.below(items.size())];
      passes += item.passes;
      attempts += item.attempts;
    }
    rate = static_cast<double>(passes) / static_cast<double>(attempts);
  }
  std::sort(rates.begin(), rates.end());
  out.interval = percentile_interval(rates, options.level);
  return out;
}

}  // namespace anvil::stats
