#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace anvil::measure {

// How long a Retry-After field asks to wait: whole seconds, or a date ("Sun, 06 Nov 1994 08:49:37
// GMT", 0 when it has passed). Nothing when it is neither.
std::optional<Nanos> parse_retry_after(std::string_view field);

}  // namespace anvil::measure
