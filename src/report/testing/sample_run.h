#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace anvil::report {

// Writes a run directory with invented but consistent records, stamps and journal, the same bytes
// every time, so that every part of the report has something to show. Kinds:
//   "full"        a small model on a processor; some checks, requests and gates fail
//   "gpu"         two GPUs, every gate passes
//   "rejected"    the engine exits during launch: no identity, no request
//   "incomplete"  the record ends inside the step "lanes"
//   "hostile"     names, answers and log lines that try to become markup, and an answer of 1 MB
//   "bench"       lanes alone under closed and open loads, with objectives, counters, calibration
//   "troubled"    the same with a client that was the bottleneck
// `directory` must not exist. Not sealed; the journal ends with the begin of "report".
Result<void> write_sample_run(const std::string& directory, std::string_view kind);

}  // namespace anvil::report
