#pragma once

#include <string>

namespace anvil::base {

// "0.1.0"
std::string version();
// The linker's build id of the running program (GNU build-id note), 40 hex digits: two programs
// that differ in one byte of code differ in it. "none" if the program was linked without one.
std::string build_id();

}  // namespace anvil::base
