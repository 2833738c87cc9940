#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/json.h"

namespace anvil::evidence {

// {"n","min","p50","p90","p95","p99","max","mean","median_below_floor"}: nearest-rank percentiles
// (the value at rank ceil(q n / 100)), null below their floor (stats::sample_floor at 99 %);
// "median_below_floor" is the nearest-rank median where n is below the floor of p50, else null.
// Values are reordered.
Json distribution(std::vector<double>& values);
// The same in milliseconds for durations in nanoseconds.
Json distribution_ms(std::vector<int64_t>& nanos);

// Nearest-rank median of any number of values; nothing of none.
std::optional<double> median(std::vector<double> values);

}  // namespace anvil::evidence
