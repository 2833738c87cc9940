#pragma once

#include "base/json.h"
#include "base/result.h"
#include "evidence/run_reader.h"

namespace anvil::evidence {

// results.json from the raw records of a run: a pure function of the files in its directory
// (docs/evidence.md describes every field). Nothing is read from the clock, the host or the engine.
Result<Json> derive(const RunReader& run);

// What ended the run early: {"step","kind","class","detail"} from the first "fail" line of the
// journal before the step "decide" began ("class": why the engine failed or died, as launch.json
// has it, else null), or null. This is what decide() wants, and what verify() hands to it.
Json failed_step(const RunReader& run);

// decision.json from results and the frozen policy: evaluates every gate, then decides. Pure.
// `failed_step` is null or {"step","kind","class","detail"}; `recipe` is the manifest's "recipe"
// object
// ("role", "pinned", "unpinned").
Json decide(const Json& results, const Json& policy, const Json& failed_step, const Json& recipe);

}  // namespace anvil::evidence
