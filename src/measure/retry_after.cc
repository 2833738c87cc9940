#include "measure/retry_after.h"

#include <algorithm>
#include <ctime>
#include <string>

#include "base/strings.h"

namespace anvil::measure {

std::optional<Nanos> parse_retry_after(std::string_view field) {
  constexpr int64_t kMostSeconds = 24 * 3600;
  if (const auto seconds = base::parse_int(base::trim(field)))
    return *seconds < 0 ? std::nullopt
                        : std::optional<Nanos>(std::min(*seconds, kMostSeconds) * kSecond);
  const std::string text(base::trim(field));
  std::tm date{};
  const char* end = strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
  if (end == nullptr || *end != '\0') return std::nullopt;
  const Nanos left = static_cast<Nanos>(timegm(&date)) * kSecond - base::wall_anchor().wall;
  return std::clamp<Nanos>(left, 0, kMostSeconds * kSecond);
}

}  // namespace anvil::measure
