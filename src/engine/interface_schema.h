#pragma once

#include "recipe/fields.h"

namespace anvil::engine {

// The form of interfaces/*.toml ("anvil/interface/v1"): every key with its type and meaning.
const recipe::Schema& interface_schema();

}  // namespace anvil::engine
