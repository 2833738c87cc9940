#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"

namespace anvil::evidence {

// The shape of a distribution for plots: [[q, value], ...] with q rising from 0 (the least value)
// to 1 (the largest), at most 96 points, dense where 1 - q is small (a log-nines axis).
// Nearest-rank values; a point is only there if its rank differs from the one before. Null of no
// values. Values are reordered.
Json curve(std::vector<double>& values);
// The same in milliseconds for durations in nanoseconds.
Json curve_ms(std::vector<int64_t>& nanos);

}  // namespace anvil::evidence
