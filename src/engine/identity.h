#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/interface_table.h"
#include "recipe/recipe.h"

namespace anvil::engine {

// One recipe field against what the running engine says.
struct IdentityField {
  enum class Verdict { kMatch, kMismatch, kNotObservable };
  std::string field;  // recipe path, e.g. "serving.context_tokens"
  Json declared;
  Json observed;  // null when not observable
  Verdict verdict = Verdict::kNotObservable;
  std::string
      source;  // where it was seen: "GET /props /default_generation_settings/n_ctx", "log", ...
};

struct Identity {
  std::vector<IdentityField> fields;
  std::string served_model;  // the id to send as `model`
  Json raw;                  // the engine's own answers, by path
};
// identity.json: {"fields":[{"field","declared","observed","verdict":"match|mismatch|not
// observable","source"}],
//                 "served_model","raw":{...}}
Json to_json(const Identity& identity);

// Asks the engine who it is, as its interface table says, and compares with the recipe field by
// field. `log_phases`: launch.json's "phases". `api_key` is the resolved secret or empty.
// `artifacts`: what verify_artifacts() proved (to_json form), which makes digests observable where
// the engine says which file it serves.
Result<Identity> observe_identity(const recipe::Recipe& recipe, const InterfaceTable& table,
                                  const std::string& base_url, const Json& log_phases,
                                  const std::string& api_key,
                                  const Json& artifacts = Json::array());

}  // namespace anvil::engine
