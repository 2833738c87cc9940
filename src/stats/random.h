#pragma once

#include <cstddef>
#include <cstdint>

namespace anvil::stats {

// The same numbers from the same seed on every machine and in every version: xoshiro256**
// (Blackman and Vigna 2018) whose state is filled by splitmix64 (Steele, Lea and Flood 2014), and
// samplers that use only IEEE operations and stats/portable_math.h. What is published from it names
// the seed. Not for secrets. One thread.
class Random {
 public:
  explicit Random(uint64_t seed);
  // With this state, which is not all zero.
  Random(uint64_t s0, uint64_t s1, uint64_t s2, uint64_t s3) : state_{s0, s1, s2, s3} {}

  uint64_t next();
  // Uniform on 0 .. n-1 without bias (rejection); 0 for n = 0.
  uint64_t below(uint64_t n);
  // Uniform on [0, 1): multiples of 2^-53.
  double uniform();
  // Exponential with this mean (inversion).
  double exponential(double mean);
  // Standard normal (Marsaglia's polar method; no value is kept for the next call).
  double normal();
  // Gamma with this shape > 0 and scale > 0: mean shape * scale (Marsaglia and Tsang 2000; shapes
  // below 1 through shape + 1 and a power of a uniform).
  double gamma(double shape, double scale);

 private:
  uint64_t state_[4];
};

// Next number of splitmix64; also a way to derive seeds: splitmix64(state) of seed + purpose.
uint64_t splitmix64(uint64_t& state);

}  // namespace anvil::stats
