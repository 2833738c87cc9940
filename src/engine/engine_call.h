#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace anvil::engine {

// GET or (with a body) POST of a small JSON answer; any status but 2xx is kHttpStatus with the
// engine's own message.
Result<Json> call_json(const std::string& base_url, const std::string& path,
                       const std::string& api_key, const Json* body = nullptr);
Result<std::string> call_text(const std::string& base_url, const std::string& path,
                              const std::string& api_key, const Json* body = nullptr);

}  // namespace anvil::engine
