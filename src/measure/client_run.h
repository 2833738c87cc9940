#pragma once

#include <vector>

#include "base/cancel.h"
#include "evidence/request_row.h"
#include "measure/client.h"
#include "measure/load_report.h"

namespace anvil::measure {

// One run() of the client: prepares the attempts, lets loops on threads of their own measure, and
// hands out the rows on the caller's thread.
std::vector<evidence::RequestRow> run_load(const Endpoint& endpoint, const Limits& limits,
                                           std::vector<Attempt> attempts,
                                           const LoadOptions& options, const base::Cancel& cancel,
                                           const Client::Finished& finished, LoadReport& report);

}  // namespace anvil::measure
