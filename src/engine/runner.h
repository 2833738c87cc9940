#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "engine/interface_table.h"
#include "recipe/recipe.h"

namespace anvil::engine {

// What will be executed, or was. Secrets appear by reference only.
struct LaunchSpec {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;  // what the recipe adds to the inherited environment
  std::vector<std::pair<std::string, std::string>> secret_env;  // name -> reference ("env:HF_TOKEN", "file:/...")
  std::string host = "127.0.0.1";
  int port = 0;
  std::string base_url;  // "http://127.0.0.1:18080"
  std::string log_path;
  Nanos start_ceiling = 1800 * kSecond;   // start-up may never take longer than this
  Nanos progress_limit = 300 * kSecond;   // nor go this long without a new log line or phase
  Nanos stop_grace = 20 * kSecond;
};
// {"argv":[...],"env":{...},"secrets":{...},"host":...,"port":...}
Json to_json(const LaunchSpec& spec);

// Turns a recipe into the exact command line and environment through its interface table. Pure: touches nothing.
Result<LaunchSpec> build_launch(const recipe::Recipe& recipe, const InterfaceTable& table);

// A phase that start-up entered, recognised in the log ("weights", "kv", "ready", ...).
struct Phase {
  std::string name;
  Nanos at = 0;
  Json values = Json::object();  // numbers found in the line, e.g. {"gib": 35.31}
};

// A failed start or a death, classified from the log.
struct Failure {
  std::string klass;   // "port_in_use", "oom_load", "bad_flag", "unclassified", ...
  std::string line;    // the first log line that shows it
  std::string hint;
  std::string phase;   // the phase it happened in
};
Json to_json(const Failure& failure);

// Receives what happens during a start, on the thread that called start().
class StartObserver {
 public:
  virtual ~StartObserver() = default;
  virtual void phase(const Phase&) {}
  virtual void progress(Nanos elapsed, std::string_view last_log_line) { (void)elapsed, (void)last_log_line; }
};

// One serve. Lifecycle: start once, stop once; the destructor stops what still runs, without grace. Thread: the
// owner's; log capture and following run on a thread of their own inside.
class Runner {
 public:
  virtual ~Runner() = default;

  // Returns when the engine answers its readiness probe. On error the engine has been stopped and `failure()` says
  // why it failed.
  virtual Result<void> start(StartObserver& observer, const base::Cancel& cancel) = 0;
  // TERM, grace, KILL for every process of the tree, children in sessions of their own too; then proves the port
  // free. Returns {"how":"exit 0"|"killed"|...,"seconds":...,"port_free":bool,"left":[pids]}.
  virtual Result<Json> stop(const base::Cancel& cancel) = 0;
  // Nothing while it runs; else how it ended.
  virtual std::optional<std::string> ended() const = 0;

  virtual const std::string& base_url() const = 0;
  virtual std::vector<Phase> phases() const = 0;
  virtual std::optional<Failure> failure() const = 0;
  // launch.json: spec, runner kind, pid, start time of the pid, boot id, program version where known, log path.
  virtual Json describe() const = 0;
  // Processes of the serve, for the sampler; empty for external.
  virtual std::vector<int> pids() const = 0;
};

std::unique_ptr<Runner> make_process_runner(LaunchSpec spec, const InterfaceTable& table, std::string run_id);
std::unique_ptr<Runner> make_external_runner(std::string base_url, const InterfaceTable& table);

}  // namespace anvil::engine
