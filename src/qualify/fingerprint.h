#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "qualify/checks.h"

namespace anvil::qualify {

// Prompt tokens of the same minimal prompt at one effort.
struct EffortCount {
  std::string effort;  // "" = none sent
  std::optional<int64_t> prompt_tokens;
  std::optional<int64_t> declared;  // delta to the first effort, from the recipe
  std::optional<int64_t> rendered;  // by the engine's render endpoint, where it has one
  std::string rendered_sha256;      // of the rendered token ids, in decimal, comma-separated
  bool refused = false;             // the engine answered with an error status
  std::string problem;              // why there is no count
};

// What the counts say, against what is declared.
struct FingerprintInput {
  std::string method;  // "usage", or "render" when the render endpoint confirms every count
  std::vector<EffortCount> efforts;
  std::optional<int64_t> repeat;  // the first prompt again
  std::optional<int64_t> longer;  // a prompt with more text
};

// The "fingerprint" object of checks.json, pure:
// {"method","efforts":[{"effort","prompt_tokens","delta","declared","rendered","rendered_sha256",
//  "verdict":"match|mismatch|not declared|not measured","explanation"}],
//  "repeat","longer","stable":bool,"moves":bool,
//  "verdict":"match|mismatch|stable|not declared|not measured","explanation"}
// match: every declared delta is seen; mismatch: one is not, an effort is refused, or the counter
// is unstable or does not move with the text; stable: at most one effort, so there is nothing to
// compare; not declared: several efforts and no declared table; not measured: no counts.
// The explanation names patterns: an effort that adds nothing though it should is "not applied",
// one that adds what another effort should add "carries the ... prefix".
Json judge_fingerprint(const FingerprintInput& input);

struct FingerprintPlan {
  std::vector<std::string> efforts;  // empty = one pass without effort
  Json declared = Json::object();    // effort -> delta, recipe field fingerprint.efforts
};

// Sends the minimal prompts (Purpose::kFingerprint, one output token) and judges their usage: that
// is what the chat surface really makes of an effort. Where the engine renders prompts, its count
// stands beside it, and replaces it where there is no usage.
Result<Json> run_fingerprint(CheckContext context, const FingerprintPlan& plan);

}  // namespace anvil::qualify
