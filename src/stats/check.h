#pragma once

#include <span>
#include <string_view>

#include "base/result.h"

namespace anvil::stats {

// Refuses NaN and infinity, naming `what` and the first index that holds one: an estimate from them
// would look like a number. Invalid input of the caller.
Result<void> finite(std::span<const double> values, std::string_view what);
// Also refuses values that are not above 0, where a ratio or a logarithm follows.
Result<void> positive(std::span<const double> values, std::string_view what);

// Most pairs of values that one function forms (memory of 200 MB): beyond it they refuse.
inline constexpr size_t kMostPairs = 25'000'000;

}  // namespace anvil::stats
