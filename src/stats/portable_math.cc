#include "stats/portable_math.h"

#include <cmath>
#include <limits>

namespace anvil::stats {

namespace {
// ln 2 in two parts; the first has 32 trailing zero bits, so that k * kLn2High is exact.
constexpr double kLn2High = 0x1.62e42fee00000p-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
}  // namespace

double log(double x) {
  if (std::isnan(x) || x < 0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (std::isinf(x)) return x;
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < 0x1.6a09e667f3bcdp-1) {
    mantissa *= 2;
    --exponent;
  }
  // ln m = 2 atanh s with s = (m - 1) / (m + 1), |s| < 0.172.
  const double s = (mantissa - 1) / (mantissa + 1);
  const double square = s * s;
  double tail = 0;
  for (int k = 25; k >= 3; k -= 2) tail = (tail + 1.0 / k) * square;
  return exponent * kLn2High + (2 * s + (2 * s * tail + exponent * kLn2Low));
}

double exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 709.79) return std::numeric_limits<double>::infinity();
  if (x < -745.2) return 0;
  const double k = std::nearbyint(x / 0x1.62e42fefa39efp-1);
  const double high = x - k * kLn2High;
  const double low = k * kLn2Low;
  const double r = high - low;
  // e^r = 1 + (r + r^2/2 (1 + r/3 (1 + r/4 (...)))); the bits that r lost are added back.
  double tail = 1;
  for (int i = 16; i >= 3; --i) tail = 1 + tail * r / i;
  const double lost = (high - r) - low;
  return std::ldexp(1 + (r + (lost + tail * r * r / 2)), static_cast<int>(k));
}

double power(double x, unsigned long long n) {
  double result = 1;
  for (; n; n >>= 1, x *= x)
    if (n & 1) result *= x;
  return result;
}

}  // namespace anvil::stats
