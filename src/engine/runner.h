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
  std::vector<std::pair<std::string, std::string>>
      env;  // what the recipe adds to the inherited environment
  std::vector<std::pair<std::string, std::string>>
      secret_env;  // name -> reference ("env:HF_TOKEN", "file:/...")
  std::string host = "127.0.0.1";
  int port = 0;
  std::string base_url;  // "http://127.0.0.1:18080"
  std::string log_path;
  Nanos start_ceiling = 1800 * kSecond;  // start-up may never take longer than this
  Nanos progress_limit = 300 * kSecond;  // nor go this long without a new log line or phase
  Nanos stop_grace = 20 * kSecond;
  std::vector<std::string> version_command;  // asks the program who it is; empty: it cannot say
};
// {"argv":[...],"env":{...},"secrets":{...},"host":...,"port":...}
Json to_json(const LaunchSpec& spec);

// What a launch needs to know beyond the recipe.
struct LaunchOptions {
  std::string platform;       // "wsl2", ... selects the recipe's overlay [platform.NAME]
  int port = 0;               // used when the recipe says 0 or nothing: pick one first
  std::string model_path;     // see resolve_launch_files(); empty: as the recipe writes it
  std::string chat_template;  // likewise
  std::string log_path;
};

// Turns a recipe into the exact command line and environment through its interface table. Pure:
// touches nothing. Order of argv: program, the line's fixed arguments, typed fields in the order of
// the table, launch.extra_args. Environment: typed fields, launch.env, then the platform overlay.
Result<LaunchSpec> build_launch(const recipe::Recipe& recipe, const InterfaceTable& table,
                                const LaunchOptions& options = {});

// A phase that start-up entered, recognised in the log ("weights", "kv", "ready", ...).
struct Phase {
  std::string name;
  Nanos at = 0;
  Json values = Json::object();  // numbers found in the line, e.g. {"gib": 35.31}
};

// A failed start or a death, classified from the log.
struct Failure {
  std::string klass;  // "port_in_use", "oom_load", "bad_flag", "unclassified", ...
  std::string line;   // the first log line that shows it
  std::string hint;
  std::string phase;  // the phase it happened in
};
Json to_json(const Failure& failure);

// Receives what happens during a start, on the thread that called start().
class StartObserver {
 public:
  virtual ~StartObserver() = default;
  // The process runs now, but is not ready: describe() as of this moment, worth writing down before
  // anything else, so that the engine can be found again if this program dies.
  virtual void spawned(const Json& description) { (void)description; }
  virtual void phase(const Phase&) {}
  virtual void progress(Nanos elapsed, std::string_view last_log_line) {
    (void)elapsed, (void)last_log_line;
  }
};

// One serve. Lifecycle: start once, stop once; the destructor stops what still runs, without grace.
// Thread: the owner's; log capture and following run on a thread of their own inside.
class Runner {
 public:
  virtual ~Runner() = default;

  // Returns when the engine answers its readiness probe. On error the engine has been stopped and
  // `failure()` says why it failed.
  virtual Result<void> start(StartObserver& observer, const base::Cancel& cancel) = 0;
  // TERM, grace, KILL for every process of the tree, children in sessions of their own too; then
  // proves the port free. Returns {"how":"exit
  // 0"|"killed"|...,"seconds":...,"port_free":bool,"left":[pids]}.
  virtual Result<Json> stop(const base::Cancel& cancel) = 0;
  // Nothing while it runs; else how it ended.
  virtual std::optional<std::string> ended() const = 0;

  virtual const std::string& base_url() const = 0;
  virtual std::vector<Phase> phases() const = 0;
  virtual std::optional<Failure> failure() const = 0;
  // launch.json: spec, runner kind, pid, start time of the pid, boot id, program version where
  // known, log path.
  virtual Json describe() const = 0;
  // Processes of the serve, for the sampler; empty for external.
  virtual std::vector<int> pids() const = 0;
};

// The variable that marks every process of a run's engine; its value is the run id.
inline constexpr std::string_view kRunMarker = "ANVIL_RUN_ID";
// Beside it: who started it, "<pid>:<start ticks>". Once that process is gone, the engine is an
// orphan.
inline constexpr std::string_view kOwnerMarker = "ANVIL_OWNER";

// The engine as a child process in a session of its own. It writes to two files beside
// `spec.log_path` and never to a pipe: a pipe whose reader dies kills or blocks the engine, and a
// slow reader slows it; so it outlives a killed anvil unharmed and can be found by the marker. A
// thread follows the files and writes `spec.log_path` ("<mono_ns> o|e text").
std::unique_ptr<Runner> make_process_runner(LaunchSpec spec, const InterfaceTable& table,
                                            std::string run_id);
// An engine that somebody else runs: start() only waits for readiness, stop() touches nothing.
// `progress_limit` bounds the wait.
std::unique_ptr<Runner> make_external_runner(std::string base_url, const InterfaceTable& table,
                                             Nanos progress_limit = 10 * kSecond);

}  // namespace anvil::engine
