#include "measure/lengths.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stats/portable_math.h"

namespace anvil::measure {

namespace {

constexpr int64_t kMostTokens = 1 << 24;

tl::unexpected<Error> wrong(std::string what) {
  return fail(Kind::kInvalidInput, Side::kClient, std::move(what));
}

Result<int64_t> count(const Json& table, const char* key, int64_t least) {
  const auto found = table.find(key);
  if (found == table.end() || !found->is_number_integer() || *found < least || *found > kMostTokens)
    return wrong(std::string(key) + " must be an integer from " + std::to_string(least) + " to " +
                 std::to_string(kMostTokens));
  return found->get<int64_t>();
}

}  // namespace

int64_t Length::draw(stats::Random& random) const {
  switch (dist) {
    case Dist::kFixed:
      return value;
    case Dist::kUniform:
      return min + static_cast<int64_t>(random.below(static_cast<uint64_t>(max - min + 1)));
    case Dist::kLognormal: {
      const double drawn = median * stats::exp(sigma * random.normal());
      return std::clamp(static_cast<int64_t>(std::llround(std::fmin(drawn, 1e9))), min, max);
    }
    case Dist::kEmpirical: {
      if (weights.empty()) return values[static_cast<size_t>(random.below(values.size()))];
      double left = random.uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
      for (size_t i = 0; i + 1 < values.size(); ++i) {
        if (left < weights[i]) return values[i];
        left -= weights[i];
      }
      return values.back();
    }
  }
  return value;
}

int64_t Length::typical() const {
  switch (dist) {
    case Dist::kFixed:
      return value;
    case Dist::kUniform:
      return min + (max - min) / 2;
    case Dist::kLognormal:
      return std::clamp(static_cast<int64_t>(median), min, max);
    case Dist::kEmpirical:
      return *std::max_element(values.begin(), values.end());
  }
  return value;
}

Result<Length> read_length(const Json& value, int64_t least) {
  if (!value.is_object()) {
    const Json table{{"value", value}};
    const auto tokens = count(table, "value", least);
    if (!tokens)
      return wrong("must be an integer from " + std::to_string(least) + ", or a table with dist");
    return Length(*tokens);
  }
  Length out;
  const std::string dist = value.contains("dist") && value["dist"].is_string()
                               ? value["dist"].get<std::string>()
                               : std::string();
  if (dist == "fixed") {
    out.value = TRY(count(value, "value", least));
  } else if (dist == "uniform") {
    out.dist = Length::Dist::kUniform;
    out.min = TRY(count(value, "min", least));
    out.max = TRY(count(value, "max", out.min));
  } else if (dist == "lognormal") {
    out.dist = Length::Dist::kLognormal;
    out.median = static_cast<double>(TRY(count(value, "median", least)));
    out.min = value.contains("min") ? TRY(count(value, "min", least)) : least;
    out.max = value.contains("max") ? TRY(count(value, "max", out.min)) : kMostTokens;
    const auto sigma = value.find("sigma");
    if (sigma == value.end() || !sigma->is_number() || *sigma <= 0 || *sigma > 5)
      return wrong("sigma must be a number above 0 and at most 5");
    out.sigma = sigma->get<double>();
  } else if (dist == "empirical") {
    out.dist = Length::Dist::kEmpirical;
    const Json values = value.value("values", Json::array());
    if (!values.is_array() || values.empty()) return wrong("values must be a list of lengths");
    for (const Json& each : values)
      out.values.push_back(TRY(count(Json{{"values", each}}, "values", least)));
    const Json weights = value.value("weights", Json::array());
    if (!weights.is_array() || (!weights.empty() && weights.size() != values.size()))
      return wrong("weights must be as many as values");
    for (const Json& weight : weights) {
      if (!weight.is_number() || weight <= 0) return wrong("weights must be numbers above 0");
      out.weights.push_back(weight.get<double>());
    }
  } else {
    return wrong("dist must be \"fixed\", \"uniform\", \"lognormal\" or \"empirical\"");
  }
  return out;
}

}  // namespace anvil::measure
