#include "measure/client_run.h"

#include <netinet/in.h>
#include <sys/prctl.h>

#include <algorithm>
#include <barrier>
#include <deque>
#include <thread>

#include "base/hash.h"
#include "measure/client_loop.h"
#include "measure/host_limits.h"

namespace anvil::measure {

namespace {

// From the moment all threads are ready to the start: none is late for the first attempt.
constexpr Nanos kLead = 2 * kMillisecond;

bool is_loopback(const net::Address& address) {
  if (address.family() == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr.s_addr) >> 24) ==
           127;
  if (address.family() == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(
               &reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr) != 0;
  return true;
}

class LoadRun {
 public:
  LoadRun(const Endpoint& endpoint, const Limits& limits, std::vector<Attempt> attempts,
          const LoadOptions& options, const base::Cancel& cancel, const Client::Finished& finished,
          LoadReport& report)
      : endpoint_(endpoint),
        limits_(limits),
        attempts_(std::move(attempts)),
        options_(options),
        cancel_(cancel),
        finished_(finished),
        report_(report) {}

  std::vector<evidence::RequestRow> run() {
    report_ = {};
    report_.began = mono_now();
    report_.connections = options_.connections;
    report_.in_flight.target = std::max(options_.concurrency, 1);
    yielded_.assign(attempts_.size(), false);
    rows_.reserve(attempts_.size());
    for (Attempt& attempt : attempts_) {
      attempt.row.request_bytes = attempt.body.size();
      attempt.row.request_sha256 = base::sha256(attempt.body);
      if (attempt.keep_body) attempt.row.request_body = attempt.body;
    }
    const Result<void> done = attempts_.empty() ? Result<void>() : measure();
    report_.ended = mono_now();
    if (!done) refuse_rest(done.error());
    return std::move(rows_);
  }

 private:
  Result<void> measure() {
    if (cancel_.requested()) return fail(base::cancelled_error());
    AttemptLinks links = TRY(AttemptLinks::build(attempts_));
    const net::Url url = TRY(net::parse_url(endpoint_.base_url));
    const Nanos asked = mono_now();
    const auto destination = TRY(net::find_destination(url, endpoint_.tls));
    report_.resolve_ns = mono_now() - asked;
    if (url.scheme != "unix") {
      // The first to be sent is the first of the list, as far as the plan says.
      attempts_.front().row.stamps.dns_begin = asked;
      attempts_.front().row.stamps.resolved = asked + report_.resolve_ns;
    }
    const auto& addresses = *destination->addresses;
    const HostNeed need = host_need(attempts_, options_, url.scheme != "unix",
                                    std::all_of(addresses.begin(), addresses.end(), is_loopback));
    const HostHas has = host_has();
    TRY(judge_need(need, has));
    TRY(raise_descriptors(need, has));

    const auto most = std::min(attempts_.size(), static_cast<size_t>(report_.in_flight.target));
    const size_t threads = std::clamp<size_t>(static_cast<size_t>(std::max(options_.threads, 1)), 1,
                                              std::min<size_t>(most, 64));
    report_.threads = static_cast<int>(threads);
    LoadShare share(attempts_, std::move(links), options_, threads);
    FinishedRows finished(threads);
    const RunContext context{endpoint_, url,   destination, limits_, options_,
                             attempts_, share, cancel_,     finished};
    run_threads(context, threads);
    if (cancel_.requested()) return fail(base::cancelled_error());
    if (share.stopped()) return fail(share.stop_reason());
    return {};
  }

  void run_threads(const RunContext& context, size_t count) {
    std::deque<ClientLoop> loops;
    for (size_t i = 0; i < count; ++i) loops.emplace_back(context, i);
    // All are ready, and the run has its start, before any of them begins.
    Nanos start = 0;
    std::barrier ready(static_cast<std::ptrdiff_t>(count), [&]() noexcept {
      const bool dated = std::any_of(attempts_.begin(), attempts_.end(),
                                     [](const Attempt& attempt) { return attempt.at.has_value(); });
      start = mono_now() + (dated ? kLead : 0);
    });
    std::vector<std::thread> threads;
    for (ClientLoop& loop : loops)
      threads.emplace_back([&] {
        // The kernel may end a sleep late by this much; the default is 50 us.
        prctl(PR_SET_TIMERSLACK, 1000);
        if (const Result<void> prepared = loop.prepare(); !prepared)
          context.share.stop(prepared.error());
        ready.arrive_and_wait();
        loop.run(start);
        context.finished.thread_ended();
      });
    std::vector<FinishedRows::Item> items, all;
    while (context.finished.take(items)) {
      all.insert(all.end(), items.begin(), items.end());
      for (const FinishedRows::Item& item : items) yield_row(item.index);
    }
    for (std::thread& thread : threads) thread.join();
    report_.began = start;
    for (const ClientLoop& loop : loops) report_.add(loop.report());
    report_.held_ns = context.share.held_in_all();
    report_.in_flight = in_flight_of(all, report_.in_flight.target);
  }

  // In a closed loop the mean counts from the first time the level was reached to the last start:
  // filling up and running dry are not the client's doing. In an open loop there is no level.
  LoadReport::InFlight in_flight_of(const std::vector<FinishedRows::Item>& items,
                                    int64_t target) const {
    LoadReport::InFlight out;
    out.target = target;
    std::vector<std::pair<Nanos, int>> changes;
    Nanos last_start = 0;
    for (const FinishedRows::Item& item : items) {
      changes.emplace_back(item.started, 1);
      changes.emplace_back(std::max(item.ended, item.started), -1);
      last_start = std::max(last_start, item.started);
    }
    std::sort(changes.begin(), changes.end());
    int64_t level = 0;
    for (const auto& [at, change] : changes) out.max = std::max(out.max, level += change);
    const bool open_loop =
        std::any_of(attempts_.begin(), attempts_.end(),
                    [](const Attempt& attempt) { return attempt.at.has_value(); });
    double area = 0;
    Nanos since = 0, before = 0;
    for (const auto& [at, change] : changes) {
      if (at > last_start) break;
      if (since != 0) area += static_cast<double>(level) * static_cast<double>(at - before);
      level += change;
      before = at;
      if (since == 0 && (open_loop || level == out.max)) since = at;
    }
    out.mean = since != 0 && last_start > since ? area / static_cast<double>(last_start - since)
                                                : static_cast<double>(out.max);
    return out;
  }

  // Whatever has no row yet ends with this error.
  void refuse_rest(const Error& error) {
    Recorder recorder(limits_);
    for (uint32_t i = 0; i < attempts_.size(); ++i) {
      if (yielded_[i]) continue;
      recorder.begin(attempts_[i].row);
      recorder.on_failed(error);
      yield_row(i);
    }
  }

  void yield_row(uint32_t index) {
    yielded_[index] = true;
    rows_.push_back(std::move(attempts_[index].row));
    if (finished_) finished_(rows_.back());
  }

  const Endpoint& endpoint_;
  const Limits& limits_;
  std::vector<Attempt> attempts_;
  const LoadOptions& options_;
  const base::Cancel& cancel_;
  const Client::Finished& finished_;
  LoadReport& report_;
  std::vector<bool> yielded_;
  std::vector<evidence::RequestRow> rows_;
};

}  // namespace

std::vector<evidence::RequestRow> run_load(const Endpoint& endpoint, const Limits& limits,
                                           std::vector<Attempt> attempts,
                                           const LoadOptions& options, const base::Cancel& cancel,
                                           const Client::Finished& finished, LoadReport& report) {
  return LoadRun(endpoint, limits, std::move(attempts), options, cancel, finished, report).run();
}

}  // namespace anvil::measure
