#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "stats/random.h"

namespace anvil::measure {

// How long prompts or answers are, in tokens. A number is a length too.
struct Length {
  enum class Dist { kFixed, kUniform, kLognormal, kEmpirical };

  Length() = default;
  Length(int64_t tokens) : value(tokens) {}

  Dist dist = Dist::kFixed;
  int64_t value = 0;               // fixed
  int64_t min = 1, max = 1 << 24;  // uniform: ends, both included; lognormal: what cuts it
  double median = 0, sigma = 0;    // lognormal: sigma is the deviation of the logarithm
  std::vector<int64_t> values;     // empirical
  std::vector<double> weights;     // of the values; empty: all the same

  // The next length; fixed ones draw nothing.
  int64_t draw(stats::Random& random) const;
  // The number itself, or a length that is typical: what to show where one number is wanted.
  int64_t typical() const;
  friend bool operator==(const Length&, const Length&) = default;
};

// A number, or a table as docs/suite.md describes it. The error names what is wrong, not where.
Result<Length> read_length(const Json& value, int64_t least);

}  // namespace anvil::measure
