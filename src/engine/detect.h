#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace anvil::engine {

// What answers at an address that nobody wrote a recipe for.
struct Detected {
  std::string interface;            // name of the shipped interface table that fits best
  std::string engine;               // "vllm", "llama.cpp", "sglang", or "external" if unknown
  std::vector<std::string> models;  // ids that /v1/models lists, in its order
};

// Asks /v1/models who owns the models it lists. An endpoint without that path is "external" without
// models. Errors: nobody answers, the key is refused (kPermission), an answer that is no HTTP.
Result<Detected> detect_engine(const std::string& base_url, const std::string& api_key);

// The reading of a /v1/models document alone.
Detected detect_from_models(const Json& document);

}  // namespace anvil::engine
