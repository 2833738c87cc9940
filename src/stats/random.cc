#include "stats/random.h"

#include <cmath>

#include "stats/portable_math.h"

namespace anvil::stats {

namespace {
constexpr uint64_t rotate(uint64_t x, int by) {
  return (x << by) | (x >> (64 - by));
}
}  // namespace

uint64_t splitmix64(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) word = splitmix64(seed);
}

uint64_t Random::next() {
  const uint64_t result = rotate(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = rotate(state_[3], 45);
  return result;
}

uint64_t Random::below(uint64_t n) {
  if (n == 0) return 0;
  // Values under 2^64 mod n would make the first residues more likely.
  const uint64_t biased = (0 - n) % n;
  uint64_t value = next();
  while (value < biased) value = next();
  return value % n;
}

double Random::uniform() {
  return static_cast<double>(next() >> 11) * 0x1p-53;
}

double Random::exponential(double mean) {
  return -mean * log(1 - uniform());
}

double Random::normal() {
  for (;;) {
    const double u = 2 * uniform() - 1, v = 2 * uniform() - 1;
    const double s = u * u + v * v;
    if (s > 0 && s < 1) return u * std::sqrt(-2 * log(s) / s);
  }
}

double Random::gamma(double shape, double scale) {
  if (shape < 1) {
    const double larger = gamma(shape + 1, scale);
    return larger * exp(log(1 - uniform()) / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal();
    const double base = 1 + c * x;
    if (base <= 0) continue;
    const double v = base * base * base;
    if (log(1 - uniform()) < x * x / 2 + d - d * v + d * log(v)) return d * v * scale;
  }
}

}  // namespace anvil::stats
