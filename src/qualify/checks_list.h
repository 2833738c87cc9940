#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "qualify/checks_send.h"

namespace anvil::qualify {

// A check with its code: sends through the sender, concludes with a grade. Errors are those of the
// sender, and of a sandbox that could not be started.
struct Check {
  std::string_view id;
  std::string_view proves;
  bool per_effort;
  Result<Grade> (*run)(CheckSender&);
};

// Checks of what answers say.
std::span<const Check> answer_checks();
// Checks of how the engine keeps the protocol.
std::span<const Check> protocol_checks();

// A code word that is new per seed and `part`, such as "KV-4821-MZ".
std::string code_word(int64_t seed, std::string_view part);

}  // namespace anvil::qualify
