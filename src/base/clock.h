#pragma once

#include <cstdint>
#include <string>

namespace anvil::base {

// Nanoseconds of CLOCK_MONOTONIC. Every stamp and every duration in Anvil is on this clock; wall
// time appears once per run, as an anchor.
using Nanos = int64_t;

inline constexpr Nanos kMicrosecond = 1'000;
inline constexpr Nanos kMillisecond = 1'000'000;
inline constexpr Nanos kSecond = 1'000'000'000;

Nanos mono_now();

// One reading of both clocks, as close together as the system allows. A later reading whose
// wall-minus-monotonic difference differs shows that the wall clock was stepped.
struct WallAnchor {
  Nanos mono = 0;
  Nanos wall = 0;  // CLOCK_REALTIME, since the epoch
};
WallAnchor wall_anchor();

// "2026-11-30T17:20:47Z" for a wall time in nanoseconds since the epoch.
std::string utc(Nanos wall);
// "20261130T172047Z", for file names.
std::string utc_compact(Nanos wall);

}  // namespace anvil::base

namespace anvil {
using base::kMicrosecond;
using base::kMillisecond;
using base::kSecond;
using base::mono_now;
using base::Nanos;
}  // namespace anvil
