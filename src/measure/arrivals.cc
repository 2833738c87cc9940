#include "measure/arrivals.h"

#include <cmath>

#include "stats/random.h"

namespace anvil::measure {

namespace {

// Turns an expected number of arrivals into the moment when the profile has reached it.
class Profile {
 public:
  explicit Profile(const ArrivalSpec& spec)
      : steps_(spec.steps), endless_(!spec.duration_s.has_value()) {}

  // Seconds; nothing when the profile ends before. Calls must be in rising order.
  std::optional<double> when(double expected) {
    while (at_ < steps_.size()) {
      const RateStep& step = steps_[at_];
      const double within = expected - reached_;
      const bool last = at_ + 1 == steps_.size();
      if (last && endless_ && step.rate == step.to_rate)
        return step.rate > 0 ? std::optional(begun_ + within / step.rate) : std::nullopt;
      const double whole = (step.rate + step.to_rate) / 2 * step.seconds;
      if (within < whole) return begun_ + solve(step, within);
      reached_ += whole;
      begun_ += step.seconds;
      ++at_;
    }
    return std::nullopt;
  }

 private:
  // rate t + slope t^2 / 2 = expected, in the form that loses no digits when the slope is small.
  static double solve(const RateStep& step, double expected) {
    const double slope = (step.to_rate - step.rate) / step.seconds;
    const double root = std::sqrt(std::fmax(0, step.rate * step.rate + 2 * slope * expected));
    const double divisor = step.rate + root;
    return divisor > 0 ? 2 * expected / divisor : 0;
  }

  const std::vector<RateStep>& steps_;
  bool endless_;
  size_t at_ = 0;
  double begun_ = 0, reached_ = 0;
};

}  // namespace

std::vector<RateStep> steady_rate(double rate) {
  return {{rate, rate, 1}};
}

std::vector<Nanos> arrivals(const ArrivalSpec& spec) {
  std::vector<Nanos> out;
  ArrivalSpec shaped = spec;
  // A single rate lasts as long as the lane does.
  if (spec.duration_s && shaped.steps.size() == 1 &&
      shaped.steps[0].rate == shaped.steps[0].to_rate)
    shaped.steps[0].seconds = *spec.duration_s;
  Profile profile(shaped);
  stats::Random random(spec.seed);
  double expected = 0;
  for (int64_t i = 0; !spec.count || i < *spec.count; ++i) {
    switch (spec.process) {
      case ArrivalProcess::kConstant:
        expected = static_cast<double>(i);
        break;
      case ArrivalProcess::kPoisson:
        expected += random.exponential(1);
        break;
      case ArrivalProcess::kGamma:
        expected += random.gamma(spec.burstiness, 1 / spec.burstiness);
        break;
    }
    const auto seconds = profile.when(expected);
    if (!seconds || (spec.duration_s && *seconds >= *spec.duration_s)) break;
    out.push_back(static_cast<Nanos>(std::llround(*seconds * 1e9)));
  }
  return out;
}

Json describe_arrivals(const std::vector<Nanos>& moments) {
  Json out{{"count", moments.size()}, {"span_s", nullptr}, {"rate", nullptr}, {"gap_cv", nullptr}};
  if (moments.size() < 2) return out;
  const double span = static_cast<double>(moments.back() - moments.front()) / 1e9;
  out["span_s"] = span;
  if (span <= 0) return out;
  const auto gaps = static_cast<double>(moments.size() - 1);
  out["rate"] = gaps / span;
  double squares = 0;
  for (size_t i = 1; i < moments.size(); ++i) {
    const double off = static_cast<double>(moments[i] - moments[i - 1]) / 1e9 - span / gaps;
    squares += off * off;
  }
  out["gap_cv"] = std::sqrt(squares / gaps) / (span / gaps);
  return out;
}

}  // namespace anvil::measure
