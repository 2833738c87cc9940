#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/failure.h"
#include "engine/log_follower.h"
#include "engine/phases.h"
#include "engine/process_tree.h"
#include "engine/runner.h"
#include "engine/spawn.h"

namespace anvil::engine {

// See make_process_runner(). Owner's thread for everything; the follower's thread only feeds lines.
class ProcessRunner : public Runner {
 public:
  ProcessRunner(LaunchSpec spec, const InterfaceTable& table, std::string run_id);
  ~ProcessRunner() override;

  Result<void> start(StartObserver& observer, const base::Cancel& cancel) override;
  Result<Json> stop(const base::Cancel& cancel) override;
  std::optional<std::string> ended() const override;
  const std::string& base_url() const override { return spec_.base_url; }
  std::vector<Phase> phases() const override;
  std::optional<Failure> failure() const override;
  Json describe() const override;
  std::vector<int> pids() const override;

 private:
  enum class State { kNew, kStarting, kReady, kStopped };
  struct Progress;

  Result<void> check_port();
  Result<void> launch(const base::Cancel& cancel);
  Result<void> wait_ready(StartObserver& observer, const base::Cancel& cancel);
  // Nothing while it is not ready; an ending when somebody else answers.
  std::optional<Ending> probe(const base::Cancel& cancel, bool& ready);
  void report(StartObserver& observer, Progress& progress, Nanos now);
  bool made_progress(Progress& progress, Nanos now);
  // Stops what runs, classifies and gives the error that start() returns.
  Error give_up(Ending ending, Kind kind, const base::Cancel& cancel);

  void take_line(std::string_view line, Nanos now);
  void reap() const;
  std::optional<Ending> exit_status() const;
  // Signals and waits until no process of the serve is left; returns the pids that are.
  std::vector<int> end_tree(Nanos grace, const base::Cancel* cancel);
  bool wait_gone(Nanos deadline, const base::Cancel* cancel, Nanos others_after);
  void finish_log();

  LaunchSpec spec_;
  InterfaceTable table_;
  std::string run_id_;
  State state_ = State::kNew;
  Spawned child_;
  uint64_t pid_start_ = 0;
  Nanos ready_at_ = 0;
  std::string last_answer_;  // what the readiness endpoint said last
  Json stop_;
  LogFollower follower_;

  mutable std::mutex tree_mutex_;
  std::unique_ptr<ProcessTree> tree_;

  mutable std::mutex mutex_;  // guards what follows
  PhaseTracker tracker_;
  FailureClassifier classifier_;
  std::string last_line_;
  std::optional<Failure> failure_;
  mutable std::optional<Ending> exit_;
};

}  // namespace anvil::engine
