#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "engine/interface_table.h"

namespace anvil::engine {

// One reading of an engine's counters in the form that is the same for every engine. Counters are
// totals since the engine started: callers take differences. `values` always has these keys, null
// where the engine does not say: running, waiting, kv_used_ratio (0..1), prompt_tokens,
// cached_tokens, output_tokens, drafts, draft_tokens, accepted_tokens, accepted_per_position (array
// by position), preemptions
struct Counters {
  Nanos at = 0;  // halfway between request and answer
  Json values;
};
Result<Counters> read_counters(const InterfaceTable& table, const std::string& base_url,
                               const std::string& api_key);

// The translation alone: Prometheus text to `Counters::values`. Series of one name with different
// labels are added up; accepted_per_position is indexed by the label `position`.
Result<Json> normal_counters(const InterfaceTable& table, std::string_view prometheus_text);

}  // namespace anvil::engine
