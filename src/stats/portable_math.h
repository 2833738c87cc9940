#pragma once

namespace anvil::stats {

// Elementary functions from additions, multiplications, divisions and square roots alone: the C
// library picks its own by the processor (with or without fused multiply-add), so the last bit of
// its results differs between machines. These are the same everywhere; relative error below 1e-15.

// Natural logarithm; -infinity of 0, NaN below 0. Series of atanh on a reduced argument.
double log(double x);
// e^x; 0 below about -745, infinity above about 709.8. Taylor series on a reduced argument.
double exp(double x);
// x^n by repeated squaring.
double power(double x, unsigned long long n);

}  // namespace anvil::stats
