#pragma once

namespace anvil::stats {

// Distribution functions, the same bits on every machine (stats/portable_math.h).

// ln Gamma(x) for x > 0 (Stirling's series with the argument shifted above 10).
double log_gamma(double x);
// Regularised incomplete beta function I_x(a, b) for a, b > 0 and x in [0, 1] (continued fraction,
// Abramowitz and Stegun 26.5.8, by Lentz's method).
double incomplete_beta(double a, double b, double x);
// x with I_x(a, b) = p (bisection to the last bit).
double incomplete_beta_inverse(double a, double b, double p);
// P(T > t) and the two-sided P(|T| > |t|) of Student's t with df > 0 degrees of freedom.
double student_t_above(double t, double df);
double student_t_two_sided(double t, double df);
// t with P(T <= t) = p, for 0 < p < 1.
double student_t_quantile(double p, double df);

}  // namespace anvil::stats
