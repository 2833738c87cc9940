#include "engine/process_runner.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/strings.h"
#include "engine/interface_rules.h"
#include "host/process.h"
#include "net/http_call.h"

namespace anvil::engine {

namespace {

constexpr Nanos kProbeEvery = 100 * kMillisecond;
constexpr Nanos kProbeLimit = 2 * kSecond;
constexpr Nanos kReportEvery = 250 * kMillisecond;
constexpr Nanos kVersionLimit = 10 * kSecond;
constexpr Nanos kScanEvery = kSecond;
constexpr Nanos kKillLimit = 10 * kSecond;
constexpr Nanos kPortLimit = 2 * kSecond;
constexpr Nanos kWaitStep = 10 * kMillisecond;
// Less than this much work is what idle processes do anyway.
constexpr double kBusyShare = 0.05;         // of one core
constexpr double kBusyBytes = 1024 * 1024;  // read per second

double in_seconds(Nanos nanos) {
  return static_cast<double>(nanos) / static_cast<double>(kSecond);
}

std::string owner_mark() {
  const auto self = host::read_process(getpid());
  return std::to_string(getpid()) + ":" + std::to_string(self ? self->start_ticks : 0);
}

Kind kind_of(Ending::How how) {
  switch (how) {
    case Ending::How::kExited:
    case Ending::How::kSignalled:
      return Kind::kEngineExited;
    case Ending::How::kStuck:
      return Kind::kEngineStuck;
    case Ending::How::kCeiling:
      return Kind::kTimeout;
    case Ending::How::kPortTaken:
    case Ending::How::kForeignPort:
      return Kind::kPortInUse;
    case Ending::How::kNotExecutable:
      return Kind::kNotFound;
    case Ending::How::kCancelled:
      return Kind::kCancelled;
  }
  return Kind::kInternal;
}

void nap() {
  poll(nullptr, 0, static_cast<int>(kWaitStep / kMillisecond));
}

}  // namespace

// What was seen when start-up last moved.
struct ProcessRunner::Progress {
  Nanos began = 0;
  Nanos moved = 0;  // when it last moved
  Nanos reported = 0;
  Nanos scanned = 0;
  uint64_t log_bytes = 0;
  size_t phases = 1;     // delivered to the observer; the first is known
  Nanos work_since = 0;  // of the following two
  Nanos cpu = 0;
  uint64_t read = 0;
};

ProcessRunner::ProcessRunner(LaunchSpec spec, const InterfaceTable& table, std::string run_id)
    : spec_(std::move(spec)),
      table_(table),
      run_id_(std::move(run_id)),
      tracker_(table.shared_rules(), 0),
      classifier_(table) {}

ProcessRunner::~ProcessRunner() {
  if (state_ == State::kStarting || state_ == State::kReady) {
    end_tree(0, nullptr);
    finish_log();
  }
}

void ProcessRunner::take_line(std::string_view line, Nanos now) {
  const std::lock_guard lock(mutex_);
  tracker_.feed(line, now);
  classifier_.feed(line, tracker_.current());
  if (!base::trim(line).empty()) last_line_.assign(line.substr(0, 400));
}

Result<void> ProcessRunner::check_port() {
  if (spec_.port <= 0) {
    return fail(Kind::kInternal, Side::kInternal, "the launch has no port");
  }
  if (net::port_is_free(spec_.host, spec_.port)) return {};
  Ending ending{.how = Ending::How::kPortTaken};
  ending.detail = "port " + std::to_string(spec_.port) + " is taken";
  if (const auto owner = port_owner(spec_.port); owner && owner->pid != 0) {
    ending.detail += " by process " + std::to_string(owner->pid) + " (" + owner->command + ")";
  } else {
    ending.detail += " by a process that this user cannot see";
  }
  const base::Cancel never;
  return fail(give_up(std::move(ending), Kind::kPortInUse, never));
}

Result<void> ProcessRunner::launch(const base::Cancel& cancel) {
  SpawnRequest request;
  request.argv = spec_.argv;
  request.env = spec_.env;
  for (const auto& [name, reference] : spec_.secret_env) {
    request.env.emplace_back(name, TRY(recipe::resolve_secret(reference)));
  }
  request.env.emplace_back(kRunMarker, run_id_);
  request.env.emplace_back(kOwnerMarker, owner_mark());

  const std::string paths[2] = {spec_.log_path + ".stdout", spec_.log_path + ".stderr"};
  base::Fd files[2];
  for (int i = 0; i < 2; ++i) {
    files[i].reset(
        open(paths[i].c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
    if (!files[i]) return fail(base::from_errno(errno, "create " + paths[i]));
  }
  request.stdout_fd = files[0].get();
  request.stderr_fd = files[1].get();

  if (!spec_.version_command.empty() && !cancel.requested()) {
    const std::string said = output_of(spec_.version_command, request.env, kVersionLimit);
    const std::lock_guard lock(mutex_);
    for (std::string_view line : base::split(said, '\n')) {
      for (const LogPattern& pattern : table_.rules().version_patterns) {
        if (const auto values = pattern.match(line)) tracker_.note(*values);
      }
    }
  }

  // Orphans of the serve come to us instead of to init, so that they stay in its tree.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  auto spawned = spawn(request);
  if (!spawned) {
    unlink(paths[0].c_str());
    unlink(paths[1].c_str());
    Ending ending{.how = Ending::How::kNotExecutable};
    ending.detail = spawned.error().detail;
    return fail(give_up(std::move(ending), spawned.error().kind, cancel));
  }
  child_ = std::move(*spawned);
  state_ = State::kStarting;
  if (const auto process = host::read_process(child_.pid)) pid_start_ = process->start_ticks;
  {
    const std::lock_guard lock(tree_mutex_);
    tree_ = std::make_unique<ProcessTree>(child_.pid, std::string(kRunMarker) + "=" + run_id_);
  }
  return follower_.start(paths[0], paths[1], spec_.log_path,
                         [this](std::string_view line, Nanos now) { take_line(line, now); });
}

Result<void> ProcessRunner::start(StartObserver& observer, const base::Cancel& cancel) {
  if (state_ != State::kNew) {
    return fail(Kind::kInternal, Side::kInternal, "a runner starts once");
  }
  if (spec_.log_path.empty()) {
    return fail(Kind::kInternal, Side::kInternal, "the launch has no log");
  }
  {
    const std::lock_guard lock(mutex_);
    tracker_ = PhaseTracker(table_.shared_rules(), mono_now());
  }
  if (auto checked = check_port(); !checked) return checked;
  if (auto launched = launch(cancel); !launched) {
    if (state_ == State::kStarting) {
      end_tree(0, nullptr);
      finish_log();
      state_ = State::kStopped;
    }
    return launched;
  }
  observer.spawned(describe());
  return wait_ready(observer, cancel);
}

std::optional<Ending> ProcessRunner::probe(const base::Cancel& cancel, bool& ready) {
  const Readiness& rule = table_.rules().readiness;
  const auto url = net::parse_url(spec_.base_url);
  if (!url) return std::nullopt;
  net::HttpCall call;
  call.path = rule.path;
  call.limit = kProbeLimit;
  const auto reply = net::http_call(*url, call, &cancel);
  if (!reply) {
    last_answer_ = reply.error().detail;
    return std::nullopt;
  }
  last_answer_ = "status " + std::to_string(reply->status);
  if (reply->status != rule.ready) return std::nullopt;
  if (const auto owner = port_owner(spec_.port); owner && owner->pid != 0) {
    const std::vector<int> ours = pids();
    if (std::find(ours.begin(), ours.end(), owner->pid) == ours.end()) {
      Ending ending{.how = Ending::How::kForeignPort};
      ending.detail = "port " + std::to_string(spec_.port) + " is answered by process " +
                      std::to_string(owner->pid) + " (" + owner->command +
                      "), which is not the engine";
      return ending;
    }
  }
  ready = true;
  return std::nullopt;
}

void ProcessRunner::report(StartObserver& observer, Progress& progress, Nanos now) {
  std::vector<Phase> fresh;
  std::string line;
  {
    const std::lock_guard lock(mutex_);
    const std::vector<Phase>& all = tracker_.phases();
    fresh.assign(all.begin() + static_cast<ptrdiff_t>(progress.phases), all.end());
    progress.phases = all.size();
    line = last_line_;
  }
  for (const Phase& phase : fresh) observer.phase(phase);
  if (!fresh.empty()) progress.moved = now;
  if (!fresh.empty() || now - progress.reported >= kReportEvery) {
    progress.reported = now;
    observer.progress(now - progress.began, line);
  }
}

// New bytes in the log, or work: computing or reading more than an idle process does, measured over
// the time since it last counted as work.
bool ProcessRunner::made_progress(Progress& progress, Nanos now) {
  if (const uint64_t bytes = follower_.bytes(); bytes != progress.log_bytes) {
    progress.log_bytes = bytes;
    return true;
  }
  const Nanos every = std::min(kScanEvery, std::max(spec_.progress_limit / 4, kWaitStep));
  if (now - progress.scanned < every) return false;
  progress.scanned = now;
  Nanos cpu = 0;
  uint64_t read = 0;
  {
    const std::lock_guard lock(tree_mutex_);
    for (const host::Process& process : tree_->scan()) {
      cpu += process.cpu;
      read += bytes_read_by(process.pid);
    }
  }
  const double elapsed = in_seconds(now - progress.work_since);
  const bool first = progress.work_since == 0;
  const bool busy =
      in_seconds(cpu - progress.cpu) > kBusyShare * elapsed ||
      (read > progress.read && static_cast<double>(read - progress.read) > kBusyBytes * elapsed);
  // A process that ended took its time with it: begin again from what is left.
  if (first || busy || cpu < progress.cpu || read < progress.read) {
    progress.work_since = now;
    progress.cpu = cpu;
    progress.read = read;
  }
  return !first && busy;
}

Result<void> ProcessRunner::wait_ready(StartObserver& observer, const base::Cancel& cancel) {
  Progress progress;
  progress.began = progress.moved = mono_now();
  for (;;) {
    pollfd waits[2] = {{child_.pidfd.get(), POLLIN, 0}, {cancel.fd(), POLLIN, 0}};
    poll(waits, 2, static_cast<int>(kProbeEvery / kMillisecond));
    const Nanos now = mono_now();
    report(observer, progress, now);
    if (cancel.requested()) {
      return fail(give_up({.how = Ending::How::kCancelled}, Kind::kCancelled, cancel));
    }
    reap();
    if (const auto exit = exit_status()) {
      return fail(give_up(*exit, Kind::kEngineExited, cancel));
    }
    bool ready = false;
    if (auto foreign = probe(cancel, ready)) {
      return fail(give_up(std::move(*foreign), Kind::kPortInUse, cancel));
    }
    if (ready) break;
    if (made_progress(progress, now)) progress.moved = now;
    if (now - progress.began >= spec_.start_ceiling) {
      Ending ending{.how = Ending::How::kCeiling};
      ending.seconds = in_seconds(now - progress.began);
      return fail(give_up(std::move(ending), Kind::kTimeout, cancel));
    }
    if (now - progress.moved >= spec_.progress_limit) {
      Ending ending{.how = Ending::How::kStuck};
      ending.seconds = in_seconds(now - progress.moved);
      return fail(give_up(std::move(ending), Kind::kEngineStuck, cancel));
    }
  }
  ready_at_ = mono_now();
  {
    const std::lock_guard lock(mutex_);
    tracker_.enter(kReadyPhase, ready_at_);
  }
  state_ = State::kReady;
  report(observer, progress, ready_at_);
  return {};
}

Error ProcessRunner::give_up(Ending ending, Kind kind, const base::Cancel& cancel) {
  if (state_ == State::kStarting || state_ == State::kReady) {
    end_tree(spec_.stop_grace, &cancel);
    finish_log();
    state_ = State::kStopped;
  }
  const std::lock_guard lock(mutex_);
  failure_ = classifier_.classify(ending, tracker_.current());
  if (kind == Kind::kInternal) kind = kind_of(ending.how);
  if (ending.how == Ending::How::kCancelled) return base::cancelled_error();
  std::string detail;
  if (ending.how == Ending::How::kNotExecutable || ending.how == Ending::How::kPortTaken ||
      ending.how == Ending::How::kForeignPort) {
    detail = anvil::engine::describe(ending);
  } else {
    detail = "the engine did not start: " + anvil::engine::describe(ending) + " in phase " +
             failure_->phase + "; " + failure_->klass;
    const std::string first = failure_->line.substr(0, failure_->line.find('\n'));
    if (failure_->klass != "unclassified" && first != anvil::engine::describe(ending)) {
      detail += ": " + first;
    }
    if (!last_answer_.empty() && (kind == Kind::kTimeout || kind == Kind::kEngineStuck)) {
      detail += " (" + table_.rules().readiness.path + " says: " + last_answer_ + ")";
    }
  }
  return Error(kind,
               kind == Kind::kPortInUse || kind == Kind::kNotFound ? Side::kHost : Side::kEngine,
               std::move(detail), failure_->hint);
}

void ProcessRunner::reap() const {
  const std::lock_guard lock(mutex_);
  if (exit_ || child_.pid == 0) return;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(child_.pid), &info, WEXITED | WNOHANG) != 0 ||
      info.si_pid == 0) {
    return;
  }
  exit_.emplace();
  if (info.si_code == CLD_EXITED) {
    exit_->code = info.si_status;
  } else {
    exit_->how = Ending::How::kSignalled;
    exit_->signal = info.si_status;
  }
}

std::optional<Ending> ProcessRunner::exit_status() const {
  const std::lock_guard lock(mutex_);
  return exit_;
}

// True when no process of the serve is left before `deadline`. From `others_after` on, processes
// that outlive the root are told to end as well.
bool ProcessRunner::wait_gone(Nanos deadline, const base::Cancel* cancel, Nanos others_after) {
  bool told_others = false;
  for (;;) {
    reap();
    bool none = false;
    {
      const std::lock_guard lock(tree_mutex_);
      none = tree_->scan().empty();
      if (!none && !told_others && mono_now() >= others_after && exit_status()) {
        tree_->signal(SIGTERM);
        told_others = true;
      }
    }
    if (none && exit_status()) return true;
    if (mono_now() >= deadline || (cancel != nullptr && cancel->level() > 1)) return false;
    nap();
  }
}

std::vector<int> ProcessRunner::end_tree(Nanos grace, const base::Cancel* cancel) {
  if (grace > 0 && (cancel == nullptr || cancel->level() <= 1)) {
    const Nanos now = mono_now();
    // The root alone is asked: an engine that is told to end takes its workers down in order.
    reap();
    if (!exit_status()) kill(child_.pid, SIGTERM);
    if (wait_gone(now + grace, cancel, now + grace / 4)) return {};
  }
  const Nanos deadline = mono_now() + kKillLimit;
  while (mono_now() < deadline) {
    {
      const std::lock_guard lock(tree_mutex_);
      tree_->scan();
      tree_->signal(SIGKILL);
    }
    reap();
    if (wait_gone(mono_now() + 5 * kWaitStep, nullptr, deadline)) return {};
  }
  return pids();
}

void ProcessRunner::finish_log() {
  follower_.stop();
  if (follower_.error()) return;  // the engine's own files are the only copy
  unlink((spec_.log_path + ".stdout").c_str());
  unlink((spec_.log_path + ".stderr").c_str());
}

Result<Json> ProcessRunner::stop(const base::Cancel& cancel) {
  if (state_ == State::kNew || state_ == State::kStopped) {
    if (!stop_.is_null()) return stop_;
    return Json{{"how", "not running"},
                {"seconds", 0.0},
                {"port_free", net::port_is_free(spec_.host, spec_.port)},
                {"left", Json::array()}};
  }
  reap();
  const std::optional<Ending> before = exit_status();
  if (before && state_ == State::kReady) {
    // It died by itself while it was needed.
    const std::lock_guard lock(mutex_);
    failure_ = classifier_.classify(*before, tracker_.current());
  }
  const Nanos began = mono_now();
  const std::vector<int> left = end_tree(spec_.stop_grace, &cancel);
  const Nanos gone = mono_now();
  finish_log();
  state_ = State::kStopped;
  bool port_free = net::port_is_free(spec_.host, spec_.port);
  while (!port_free && mono_now() - gone < kPortLimit) {
    nap();
    port_free = net::port_is_free(spec_.host, spec_.port);
  }
  std::string how = "unknown";
  if (const auto exit = exit_status()) {
    how = exit->how == Ending::How::kExited    ? "exit " + std::to_string(exit->code)
          : exit->signal == SIGKILL && !before ? "killed"
                                               : "signal " + std::to_string(exit->signal);
  }
  if (before) how += ", before it was stopped";
  stop_ = {{"how", how},
           {"seconds", in_seconds(gone - began)},
           {"port_free", port_free},
           {"left", left}};
  return stop_;
}

std::optional<std::string> ProcessRunner::ended() const {
  reap();
  if (const auto exit = exit_status()) return anvil::engine::describe(*exit);
  if (state_ == State::kStopped) return "never ran";
  return std::nullopt;
}

std::vector<Phase> ProcessRunner::phases() const {
  const std::lock_guard lock(mutex_);
  return tracker_.phases();
}

std::optional<Failure> ProcessRunner::failure() const {
  reap();
  const std::lock_guard lock(mutex_);
  if (failure_) return failure_;
  if (state_ == State::kReady && exit_) return classifier_.classify(*exit_, tracker_.current());
  return std::nullopt;
}

Json ProcessRunner::describe() const {
  const std::optional<Failure> failed = failure();
  Json result = {{"spec", to_json(spec_)},
                 {"runner", "process"},
                 {"interface", table_.name()},
                 {"run", run_id_},
                 {"pid", child_.pid == 0 ? Json() : Json(child_.pid)},
                 {"pid_start", pid_start_ == 0 ? Json() : Json(pid_start_)},
                 {"boot_id", host::boot_id()},
                 {"owner", owner_mark()},
                 {"log", spec_.log_path},
                 {"phases", to_json(phases())},
                 {"ready_ns", ready_at_ == 0 ? Json() : Json(ready_at_)},
                 {"failure", failed ? to_json(*failed) : Json()},
                 {"stop", stop_}};
  if (const auto error = follower_.error()) result["log_error"] = *error;
  return result;
}

std::vector<int> ProcessRunner::pids() const {
  const std::lock_guard lock(tree_mutex_);
  std::vector<int> result;
  if (!tree_ || state_ == State::kStopped) return result;
  for (const host::Process& process : tree_->scan()) result.push_back(process.pid);
  return result;
}

std::unique_ptr<Runner> make_process_runner(LaunchSpec spec, const InterfaceTable& table,
                                            std::string run_id) {
  return std::make_unique<ProcessRunner>(std::move(spec), table, std::move(run_id));
}

}  // namespace anvil::engine
