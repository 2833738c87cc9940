#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "evidence/request_row.h"
#include "measure/client.h"
#include "scripted/ledger.h"

namespace anvil::measure {

// Under which load the client's own error is to be measured: that of one lane.
struct CalibrationPoint {
  std::string lane;
  int concurrency = 1;
  int threads = 1;
  Connections connections = Connections::kReuse;
  bool stream = true;
  double events_per_s = 20;  // of all streams together; what the lane really had
};

// Errors of the client against the ledger of the scripted engine, in nanoseconds, positive when the
// client was late or saw a longer time:
//   stamp: the client's stamp of an output event minus the moment when its write began
//   first_output: the client's (first output - sent) minus the server's (its write - the kernel's
//     stamp of the request's last byte)
//   gap: the client's time between two output events minus the server's
struct ClientErrors {
  std::vector<Nanos> stamp, first_output, gap;
  int64_t unmatched = 0;  // rows whose answer is not in the ledger, or has another number of events
};
// Rows and ledger entries are matched by the id of the answer. Pure.
ClientErrors client_errors(const std::vector<evidence::RequestRow>& rows,
                           const scripted::Ledger& ledger);

// Runs each point against a scripted engine on this host, on a thread of its own, for about a
// second each, and returns calibration.json: {"schema":"anvil/calibration/v1","points":[{"lane",
// "concurrency","threads","events_per_s" (reached),"events_per_s_target","stamp_error_ns":[...],
// "first_output_error_ns","gap_error_ns","unmatched","client": LoadReport,"server": summary of the
// ledger with "void" and "void_because"}]}. Long lists of errors are thinned to 4,096 values by
// rank, ends kept. Errors: kCancelled; the scripted engine cannot be started.
Result<Json> calibrate(const std::vector<CalibrationPoint>& points, const base::Cancel& cancel,
                       const std::function<void(size_t done, const std::string& what)>& progress);

}  // namespace anvil::measure
