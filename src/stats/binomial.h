#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "stats/bootstrap.h"

namespace anvil::stats {

// Upper bound of a failure rate after n independent trials without a failure, at 95 %: 3 / n
// (Hanley and Lippman-Hand 1983), at most 1. Nothing for n = 0.
std::optional<double> rule_of_three(size_t n);

// Exact two-sided interval of a success rate (Clopper and Pearson 1934), as a share. Assumes
// independent trials. Refuses n = 0 and more successes than trials.
Result<Interval> clopper_pearson(size_t successes, size_t n, double level = 0.95);

// One quality item and its k attempts.
struct Item {
  size_t passes = 0;
  size_t attempts = 0;
};

struct PassRate {
  size_t items = 0;
  size_t attempts = 0;
  size_t passes = 0;
  double rate = 0;  // passes / attempts
  // Nothing with fewer than 2 items.
  std::optional<Interval> interval;
  // Every attempt had the same outcome, so resampling has no spread: the interval is then the exact
  // one with the items, not the attempts, as trials. 27 of 27 from 9 items says no more than 9
  // of 9.
  bool exact_over_items = false;
};

// Pass rate of items with several attempts each; the interval resamples whole items, since
// attempts at one item are not independent (cluster bootstrap; Miller 2024, arXiv 2411.00640, on
// clustered errors). Refuses no items, an item without attempts or with more passes than attempts.
Result<PassRate> clustered_pass_rate(std::span<const Item> items, const BootstrapOptions& options);

}  // namespace anvil::stats
