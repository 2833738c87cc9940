#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace anvil::measure {

// Tokens that one of Mooncake's hash_ids stands for.
inline constexpr int64_t kTraceBlockTokens = 512;

// One request of a recorded trace.
struct TraceEntry {
  Nanos at = 0;  // since the first entry
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  // Content of the prompt, block by block: requests whose lists begin alike begin with the same
  // kTraceBlockTokens tokens for each equal id. Empty where the trace does not say.
  std::vector<int64_t> blocks;
  std::string session;  // requests of one session follow each other; "" if the trace names none
  int line = 0;
};

struct Trace {
  std::vector<TraceEntry> entries;  // by time; equal times in file order
  std::string sha256;               // of the file
  int64_t unordered = 0;            // entries that stood before an earlier one
};

// Reads Mooncake JSON Lines ({"timestamp" in ms, "input_length", "output_length", "hash_ids"}) or
// CSV with a header line (timestamp_s,prompt_tokens,output_tokens[,session], in any order; further
// columns are ignored). A file whose first byte that is not blank is "{" is JSON Lines. `name` is
// the file in messages.
//
// Refused with FILE:LINE: what does not parse, missing or negative values, lengths above 2^24,
// times beyond 30 days after the first, more hash_ids than the prompt has blocks, more than
// 1,000,000 entries, none at all. Empty lines are skipped.
Result<Trace> parse_trace(std::string_view text, const std::string& name);
// The same from a file of at most 1 GiB.
Result<Trace> load_trace(const std::string& path);

}  // namespace anvil::measure
