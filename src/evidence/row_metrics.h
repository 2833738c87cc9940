#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "evidence/request_row.h"

namespace anvil::evidence {

// What one attempt says about time and tokens, by the definitions of docs/measurement.md. Durations
// in nanoseconds; absent where a stamp or a count is absent, so that a missing stamp can never
// enter a statistic.
struct RowMetrics {
  std::optional<int64_t> ttfe, ttfo, ttfv, e2e, done, generation, send_delay;
  std::optional<int64_t> prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens;
  std::string_view cached_source = "none";  // "usage", "timings", "none"
  // Completion tokens after the first output event: from per-chunk counts, else as if every chunk
  // carried the same number.
  std::optional<double> tokens_after_first;
  bool per_chunk = false;
  std::optional<double> tpot_ms, decode_tok_s;
  std::optional<double> effective_prefill_tok_s, computed_prefill_tok_s;
};
RowMetrics measure(const RequestRow& row);

// Why a row may not carry its declared cache state; "" if it may.
//   "cached"      declared cold, and the engine took prompt tokens from its cache
//   "not-cached"  declared prefix, and the engine took none
//   "unproven"    the engine reports no cached-token count, and the suite demands the proof
std::string_view refuse_cache_state(std::string_view declared, const RowMetrics& metrics,
                                    bool proof_demanded);

}  // namespace anvil::evidence
