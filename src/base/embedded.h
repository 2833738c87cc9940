#pragma once

#include <span>
#include <string_view>

namespace anvil::base {

// A shipped data file that is compiled into the program (see anvil_embed in cmake/rooms.cmake).
struct EmbeddedFile {
  std::string_view name;  // path in the source tree, e.g. "interfaces/llama.cpp.toml"
  std::string_view bytes;
};

}  // namespace anvil::base
