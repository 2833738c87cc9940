#include "measure/client.h"

#include "measure/client_loop.h"

namespace anvil::measure {

Client::Client(Endpoint endpoint, Limits limits)
    : endpoint_(std::move(endpoint)), limits_(limits) {}

std::vector<evidence::RequestRow> Client::run(
    std::vector<Attempt> attempts, int concurrency, const base::Cancel& cancel,
    const std::function<void(const evidence::RequestRow&)>& finished) {
  return ClientLoop(endpoint_, limits_, std::move(attempts), concurrency, cancel, finished).run();
}

evidence::RequestRow Client::run_one(Attempt attempt, const base::Cancel& cancel) {
  std::vector<Attempt> one;
  one.push_back(std::move(attempt));
  return std::move(run(std::move(one), 1, cancel).front());
}

}  // namespace anvil::measure
