#pragma once

#include <string>

#include "base/json.h"
#include "evidence/request_row.h"

namespace anvil::evidence {

// One attempt as scripts and spreadsheets want it: what a row says, derived, in milliseconds; null
// where undefined, never 0 for unknown.
//   {"lane","item","answer_id","sent_ns","purpose","outcome","error_class","ttfe_ms","ttfo_ms",
//    "ttfv_ms","generation_ms","e2e_ms","done_ms","service_ms","schedule_ms","send_delay_ms",
//    "chunk_gaps_ms": [...],"tpot_ms","decode_tok_s","output_tokens","prompt_tokens",
//    "cached_tokens","reasoning_tokens","token_source","status","flags": [...]}
// "sent_ns" is on CLOCK_MONOTONIC. "error_class" is the kind of the error, null if there was none.
// "flags" names what weakens the row: "no-usage", "even-chunks-assumed", "cold-but-cached",
// "prefix-not-cached".
Json flat_row(const RequestRow& row);

// The same as comma-separated values (RFC 4180): the names of the columns, and one line each with
// its line feed. Lists are joined with spaces.
std::string csv_header();
std::string csv_line(const RequestRow& row);

}  // namespace anvil::evidence
