#include "stats/special.h"

#include <cmath>

#include "stats/portable_math.h"

namespace anvil::stats {

double log_gamma(double x) {
  double shift = 1;
  while (x < 10) shift *= x++;
  const double inverse = 1 / x, square = inverse * inverse;
  const double series =
      inverse *
      (1.0 / 12 - square * (1.0 / 360 -
                            square * (1.0 / 1260 -
                                      square * (1.0 / 1680 -
                                                square * (1.0 / 1188 - square * 691.0 / 360360)))));
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  return (x - 0.5) * log(x) - x + kHalfLogTwoPi + series - log(shift);
}

namespace {
// The continued fraction of I_x(a, b), which converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr int kMostTerms = 200'000;
  const auto away_from_zero = [](double v) { return std::fabs(v) < kTiny ? kTiny : v; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double result = d;
  for (int m = 1; m <= kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    const double step = d * c;
    result *= step;
    if (std::fabs(step - 1) < 1e-16) break;
  }
  return result;
}
}  // namespace

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(1 - x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double incomplete_beta_inverse(double a, double b, double p) {
  if (p <= 0) return 0;
  if (p >= 1) return 1;
  double low = 0, high = 1;
  for (;;) {
    const double middle = (low + high) / 2;
    if (middle <= low || middle >= high) return middle;
    (incomplete_beta(a, b, middle) < p ? low : high) = middle;
  }
}

double student_t_two_sided(double t, double df) {
  return incomplete_beta(df / 2, 0.5, df / (df + t * t));
}

double student_t_above(double t, double df) {
  const double tail = student_t_two_sided(t, df) / 2;
  return t >= 0 ? tail : 1 - tail;
}

double student_t_quantile(double p, double df) {
  if (p < 0.5) return -student_t_quantile(1 - p, df);
  double low = 0, high = 1;
  while (student_t_above(high, df) > 1 - p && high < 1e15) high *= 2;
  for (;;) {
    const double middle = (low + high) / 2;
    if (middle <= low || middle >= high) return middle;
    (student_t_above(middle, df) > 1 - p ? low : high) = middle;
  }
}

}  // namespace anvil::stats
