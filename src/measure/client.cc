#include "measure/client.h"

#include "measure/client_run.h"

namespace anvil::measure {

Client::Client(Endpoint endpoint, Limits limits)
    : endpoint_(std::move(endpoint)), limits_(limits) {}

std::vector<evidence::RequestRow> Client::run(std::vector<Attempt> attempts,
                                              const LoadOptions& options,
                                              const base::Cancel& cancel, const Finished& finished,
                                              LoadReport* report) {
  LoadReport own;
  return run_load(endpoint_, limits_, std::move(attempts), options, cancel, finished,
                  report != nullptr ? *report : own);
}

std::vector<evidence::RequestRow> Client::run(std::vector<Attempt> attempts, int concurrency,
                                              const base::Cancel& cancel,
                                              const Finished& finished) {
  LoadOptions options;
  options.concurrency = concurrency;
  return run(std::move(attempts), options, cancel, finished);
}

evidence::RequestRow Client::run_one(Attempt attempt, const base::Cancel& cancel) {
  std::vector<Attempt> one;
  one.push_back(std::move(attempt));
  return std::move(run(std::move(one), 1, cancel).front());
}

}  // namespace anvil::measure
