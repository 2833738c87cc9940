#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/strings.h"

namespace anvil::measure {

inline constexpr uint64_t kInputFileLimit = 1ull << 30;

// An error about a line of a file of requests or prompts.
inline tl::unexpected<Error> bad_line(const std::string& file, int line, std::string what,
                                      std::string hint = {}) {
  Error error(Kind::kInvalidInput, Side::kClient, std::move(what), std::move(hint));
  return fail(std::move(error.with_position({file, line, 0, ""})));
}

// Calls take(line, number) for every line that is not blank, without its line end, until one
// fails. Lines count from 1.
template <class Take>
Result<void> each_line(std::string_view text, Take take) {
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = base::trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) continue;
    if (auto taken = take(line, number); !taken) return fail(std::move(taken.error()));
  }
  return {};
}

}  // namespace anvil::measure
