#pragma once

#include <string_view>

#include "base/json.h"

namespace anvil::engine {

// One value out of a dictionary in Python's notation, as engines print their arguments:
// {'max_model_len': 4096, 'enforce_eager': True, 'served_model_name': ['gemma']}. `key` may go
// deeper with dots ("speculative_config.method"). Null when the text lacks the key or cannot be
// read; None is null too. Objects of other kinds (torch.bfloat16, <Enum.X: 1>) are texts.
Json python_value(std::string_view text, std::string_view key);

}  // namespace anvil::engine
