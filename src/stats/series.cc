#include "stats/series.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "stats/check.h"
#include "stats/special.h"

namespace anvil::stats {

namespace {
double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

tl::unexpected<Error> refuse(std::string detail) {
  return fail(Kind::kInvalidInput, Side::kInternal, std::move(detail));
}
}  // namespace

Result<BatchMeans> batch_means(std::span<const double> values, size_t batches, double level) {
  TRY(finite(values, "series"));
  if (batches < 2 || values.size() < batches)
    return refuse("a series of " + std::to_string(values.size()) + " values in " +
                  std::to_string(batches) + " batches");
  BatchMeans out;
  out.batches = batches;
  out.per_batch = values.size() / batches;
  out.dropped = values.size() % batches;
  std::vector<double> means(batches);
  for (size_t i = 0; i < batches; ++i)
    means[i] = mean_of(values.subspan(out.dropped + i * out.per_batch, out.per_batch));
  const double n = static_cast<double>(batches);
  out.mean = mean_of(means);
  double squares = 0, neighbours = 0;
  for (size_t i = 0; i < batches; ++i) {
    squares += (means[i] - out.mean) * (means[i] - out.mean);
    if (i) neighbours += (means[i] - out.mean) * (means[i - 1] - out.mean);
  }
  out.lag1_correlation = squares > 0 ? neighbours / squares : 0;
  out.standard_error = std::sqrt(squares / (n - 1) / n);
  const double half = student_t_quantile(1 - (1 - level) / 2, n - 1) * out.standard_error;
  out.interval = {out.mean - half, out.mean + half, level};
  return out;
}

Result<Slope> linear_slope(std::span<const double> x, std::span<const double> y, double level) {
  TRY(finite(x, "x"));
  TRY(finite(y, "y"));
  if (x.size() != y.size() || x.size() < 3)
    return refuse("a slope of " + std::to_string(x.size()) + " x and " + std::to_string(y.size()) +
                  " y; it needs as many of each, at least 3");
  const double n = static_cast<double>(x.size());
  const double mean_x = mean_of(x), mean_y = mean_of(y);
  double xx = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  if (xx == 0) return refuse("a slope over x values that are all equal");
  Slope out;
  out.slope = xy / xx;
  out.intercept = mean_y - out.slope * mean_x;
  double squares = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double residual = (y[i] - mean_y) - out.slope * (x[i] - mean_x);
    squares += residual * residual;
  }
  out.standard_error = std::sqrt(squares / (n - 2) / xx);
  const double half = student_t_quantile(1 - (1 - level) / 2, n - 2) * out.standard_error;
  out.interval = {out.slope - half, out.slope + half, level};
  if (out.standard_error > 0)
    out.p_two_sided = student_t_two_sided(out.slope / out.standard_error, n - 2);
  else
    out.p_two_sided = out.slope == 0 ? 1 : 0;
  return out;
}

Result<SteadyState> steady_state(std::span<const double> x, std::span<const double> y,
                                 double most_drift, double level) {
  SteadyState out;
  out.slope = TRY(linear_slope(x, y, level));
  const double mean = mean_of(y);
  if (mean == 0) return refuse("a drift relative to a mean of 0");
  const auto [least, most] = std::minmax_element(x.begin(), x.end());
  const double scale = (*most - *least) / std::fabs(mean);
  out.drift = out.slope.slope * scale;
  out.interval = {out.slope.interval.low * scale, out.slope.interval.high * scale, level};
  if (out.interval.low > -most_drift && out.interval.high < most_drift)
    out.verdict = Steadiness::kSteady;
  else if (out.interval.low > most_drift || out.interval.high < -most_drift)
    out.verdict = Steadiness::kDrifting;
  return out;
}

}  // namespace anvil::stats
