#pragma once

#include <memory>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "base/version.h"
#include "evidence/request_row.h"
#include "evidence/run_reader.h"
#include "evidence/run_writer.h"

// For tests and benchmarks: a complete run, with all its documents, that no engine took part in.
namespace anvil::evidence::testing {

struct SyntheticOptions {
  int lane_requests = 24;  // measured requests of each lane
  int chunks = 32;         // output events of each request
  int samples = 120;
  bool cancelled_rows = true;   // failures in the record
  std::string stop_after = {};  // leave the run unsealed after this step; "" seals it
  Json policy =
      nullptr;  // canonical form; null = a policy with gates that pass and gates that fail
  std::string fail_step = {};                // this step fails instead of ending
  int64_t base_mono_ns = 1'000'000'000'000;  // where the stamps begin
  std::string build = base::build_id();      // who wrote the run
};

// A frozen recipe, policy, suite and plan that fit together.
Frozen synthetic_frozen(const SyntheticOptions& options = {});

// A finished attempt of a lane: `chunks` events of `tokens_per_chunk` tokens, the first `ttfo`
// after sending, then one every `gap`.
struct RowShape {
  int64_t sent = 1'000'000'000'000;
  int64_t ttfo = 80'000'000;
  int64_t gap = 10'000'000;
  int chunks = 32;
  int64_t tokens_per_chunk = 1;
  bool count_chunks = false;  // the engine says how many tokens each chunk has
  int64_t prompt_tokens = 512;
  std::optional<int64_t> cached_tokens = 0;
};
RequestRow synthetic_row(const RowShape& shape = {});

// Writes a run below `runs_dir` and returns its directory.
Result<std::string> write_synthetic_run(const std::string& runs_dir,
                                        const SyntheticOptions& options = {});

// A report that is a pure function of the run, for verify().
Result<std::string> render_plain(const RunReader& run);

}  // namespace anvil::evidence::testing
