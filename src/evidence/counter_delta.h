#pragma once

#include "base/json.h"

namespace anvil::evidence {

// What an engine's counters say of the time between two readings of them
// (engine::Counters::values): differences, never totals.
//   {"prompt_tokens","cached_tokens","output_tokens","preemptions","drafts","draft_tokens",
//    "accepted_tokens", "acceptance", "mean_acceptance_length", "acceptance_by_position": [...],
//    "reset": bool}
// Each is null where a side does not say. acceptance = accepted / drafted tokens;
// mean_acceptance_length = 1 + accepted tokens / drafts; by position: accepted at that position /
// drafts. A counter that fell means that the engine restarted in between: "reset" is true and every
// difference is null. Null when either reading is missing altogether.
Json counter_delta(const Json& before, const Json& after);

}  // namespace anvil::evidence
