#pragma once

#include <string>
#include <string_view>

namespace anvil::report {

// page.css and page.js, as compiled in.
std::string_view style_sheet();
std::string_view script();
// SHA-256 of the script in base64, as a content security policy wants it.
std::string script_hash();

}  // namespace anvil::report
