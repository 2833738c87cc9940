#include <poll.h>

#include "engine/interface_rules.h"
#include "engine/phases.h"
#include "engine/runner.h"
#include "net/http_call.h"

namespace anvil::engine {

namespace {

constexpr Nanos kProbeEvery = 200 * kMillisecond;
constexpr Nanos kProbeLimit = 5 * kSecond;

// See make_external_runner().
class ExternalRunner : public Runner {
 public:
  ExternalRunner(std::string base_url, const InterfaceTable& table, Nanos limit)
      : base_url_(std::move(base_url)),
        table_(table),
        limit_(limit),
        tracker_(table.shared_rules(), mono_now()) {}

  Result<void> start(StartObserver& observer, const base::Cancel& cancel) override {
    const net::Url url = TRY(net::parse_url(base_url_));
    const Readiness& rule = table_.rules().readiness;
    const Nanos began = mono_now();
    observer.spawned(describe());
    std::string said;
    for (;;) {
      net::HttpCall call;
      call.path = rule.path;
      call.limit = kProbeLimit;
      const auto reply = net::http_call(url, call, &cancel);
      if (cancel.requested()) return fail(base::cancelled_error());
      if (reply && reply->status == rule.ready) break;
      // A server that wants a key before it says anything is up; requests will carry one.
      if (reply && reply->status == 401) break;
      said =
          reply ? "it answers with status " + std::to_string(reply->status) : reply.error().detail;
      if (mono_now() - began >= limit_) return fail(not_ready(said));
      observer.progress(mono_now() - began, said);
      if (!base::sleep_unless_cancelled(cancel, kProbeEvery)) return fail(base::cancelled_error());
    }
    ready_at_ = mono_now();
    tracker_.enter(kReadyPhase, ready_at_);
    observer.phase(tracker_.phases().back());
    return {};
  }

  Result<Json> stop(const base::Cancel&) override {
    return Json{
        {"how", "left running"}, {"seconds", 0.0}, {"port_free", nullptr}, {"left", Json::array()}};
  }

  std::optional<std::string> ended() const override { return std::nullopt; }
  const std::string& base_url() const override { return base_url_; }
  std::vector<Phase> phases() const override { return tracker_.phases(); }
  std::optional<Failure> failure() const override { return failure_; }
  std::vector<int> pids() const override { return {}; }

  Json describe() const override {
    return {{"spec", {{"base_url", base_url_}}},
            {"runner", "external"},
            {"interface", table_.name()},
            {"pid", nullptr},
            {"phases", to_json(tracker_.phases())},
            {"ready_ns", ready_at_ == 0 ? Json() : Json(ready_at_)},
            {"failure", failure_ ? to_json(*failure_) : Json()},
            {"stop", nullptr}};
  }

 private:
  Error not_ready(const std::string& said) {
    failure_ = Failure{"unreachable", said, "start the server first, or correct launch.url",
                       std::string(kStartPhase)};
    return Error(Kind::kConnect, Side::kEngine,
                 "no engine is ready at " + base_url_ + table_.rules().readiness.path + ": " + said,
                 failure_->hint);
  }

  std::string base_url_;
  InterfaceTable table_;
  Nanos limit_;
  PhaseTracker tracker_;
  Nanos ready_at_ = 0;
  std::optional<Failure> failure_;
};

}  // namespace

std::unique_ptr<Runner> make_external_runner(std::string base_url, const InterfaceTable& table,
                                             Nanos progress_limit) {
  return std::make_unique<ExternalRunner>(std::move(base_url), table, progress_limit);
}

}  // namespace anvil::engine
