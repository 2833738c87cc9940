#pragma once

#include "base/json.h"
#include "base/result.h"
#include "evidence/run_reader.h"

namespace anvil::evidence {

// results.json from the raw records of a run: a pure function of the files in its directory (docs/evidence.md
// describes every field). Nothing is read from the clock, the host or the engine.
Result<Json> derive(const RunReader& run);

// decision.json from results and the frozen policy: evaluates every gate, then decides. Pure.
// `failed_step` is null or {"step","kind","detail","class"}; `recipe` is the manifest's "recipe" object.
Json decide(const Json& results, const Json& policy, const Json& failed_step, const Json& recipe);

}  // namespace anvil::evidence
