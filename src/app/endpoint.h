#pragma once

#include <string>

#include "base/result.h"
#include "engine/detect.h"
#include "recipe/policy.h"
#include "recipe/recipe.h"

namespace CLI {
class App;
}

namespace anvil::app {

// What a person says of an endpoint that has no recipe.
struct EndpointOptions {
  std::string url;
  std::string model;      // "" = the only one that it lists
  std::string api_key;    // a reference: "env:NAME" or "file:PATH"; "" = none
  std::string interface;  // "auto", or the name of an interface table
};

// An external recipe for that endpoint, of role "control" since nothing that is not pinned can be
// promoted, and its source. Asks the endpoint what it is. Errors: nobody answers, the key is
// refused, the model is not among those that it lists (with a suggestion), several models and none
// chosen.
Result<std::string> endpoint_recipe(const EndpointOptions& options);

// --url, --model, --api-key, --engine.
void add_endpoint_options(CLI::App& command, EndpointOptions& options);

}  // namespace anvil::app
