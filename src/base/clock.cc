#include "base/clock.h"

#include <ctime>

namespace anvil::base {

namespace {
Nanos read(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return static_cast<Nanos>(ts.tv_sec) * kSecond + ts.tv_nsec;
}

std::string format(Nanos wall, const char* pattern) {
  const time_t seconds = static_cast<time_t>(wall / kSecond);
  tm parts{};
  gmtime_r(&seconds, &parts);
  char buffer[32];
  const size_t length = strftime(buffer, sizeof buffer, pattern, &parts);
  return {buffer, length};
}
}  // namespace

Nanos mono_now() {
  return read(CLOCK_MONOTONIC);
}

WallAnchor wall_anchor() {
  const Nanos before = read(CLOCK_MONOTONIC);
  const Nanos wall = read(CLOCK_REALTIME);
  const Nanos after = read(CLOCK_MONOTONIC);
  return {before + (after - before) / 2, wall};
}

std::string utc(Nanos wall) {
  return format(wall, "%Y-%m-%dT%H:%M:%SZ");
}
std::string utc_compact(Nanos wall) {
  return format(wall, "%Y%m%dT%H%M%SZ");
}

}  // namespace anvil::base
