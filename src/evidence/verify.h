#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "evidence/run_reader.h"

namespace anvil::evidence {

struct Mismatch {
  std::string where;  // artifact and JSON pointer: "results.json#/lanes/0/ttfo_ms/p50",
                      // "requests.jsonl#/17"
  std::string recorded;
  std::string recomputed;
};

struct Verification {
  bool ok = false;
  bool complete = false;  // false for a run that was never sealed: then ok speaks of what is there
  int64_t artifacts = 0;  // hashes recomputed
  int64_t numbers = 0;    // numbers recomputed
  int64_t rows = 0;
  std::vector<Mismatch> mismatches;
  // What could not be judged, one sentence each: a report that another build of this program wrote
  // and that this build would write differently.
  std::vector<std::string> not_compared;
};

// Renders the report from a run; verify compares it with the stored one byte for byte. The report
// room lies above this one, so the caller hands it in.
using RenderReport = std::function<Result<std::string>(const RunReader&)>;

// Recomputes every hash, the journal chain, results.json, decision.json and the report.
Result<Verification> verify(const std::string& directory, const RenderReport& render);

}  // namespace anvil::evidence
