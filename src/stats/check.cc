#include "stats/check.h"

#include <cmath>
#include <string>

namespace anvil::stats {

Result<void> finite(std::span<const double> values, std::string_view what) {
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return fail(Kind::kInvalidInput, Side::kInternal,
                  std::string(what) + ": value " + std::to_string(i) + " is not a finite number",
                  "leave out what was not measured before computing from the rest");
  return {};
}

Result<void> positive(std::span<const double> values, std::string_view what) {
  TRY(finite(values, what));
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] <= 0)
      return fail(Kind::kInvalidInput, Side::kInternal,
                  std::string(what) + ": value " + std::to_string(i) +
                      " is not above 0, so no ratio can be formed with it");
  return {};
}

}  // namespace anvil::stats
