#pragma once

#include <cstdint>

namespace anvil::report {

// Numbers that look measured and never change.
class Noise {
 public:
  explicit Noise(uint64_t seed = 20261130) : state_(seed) {}
  double operator()(double low, double high) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return low + (high - low) * static_cast<double>(state_ >> 11) / 9007199254740992.0;
  }

 private:
  uint64_t state_;
};

}  // namespace anvil::report
