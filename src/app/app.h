#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/json.h"
#include "base/result.h"
#include "evidence/index.h"
#include "recipe/recipe.h"

namespace CLI {
class App;
}

namespace anvil::app {

// Parses the command line, runs one command and returns the exit code. The only place that catches
// exceptions.
int run(int argc, char** argv);

// What every command gets. `--json` commands write exactly one object to stdout, at their end;
// everything for people that is not the answer itself goes to stderr.
struct Context {
  base::Cancel cancel;
  std::function<int()> command;  // set by the parsed sub-command
};

// Adds one command (or group) to the command line. Each has its flags, its help with an example and
// its body in a file of its own.
void add_recipe(CLI::App& root, Context& context);
void add_qualify(CLI::App& root, Context& context);
void add_bench(CLI::App& root, Context& context);
void add_ab(CLI::App& root, Context& context);
void add_calibrate(CLI::App& root, Context& context);
void add_engine(CLI::App& root, Context& context);
void add_runs(CLI::App& root, Context& context);
void add_verify(CLI::App& root, Context& context);
void add_report(CLI::App& root, Context& context);
void add_evidence(CLI::App& root, Context& context);
void add_doctor(CLI::App& root, Context& context);
void add_completion(CLI::App& root, Context& context);

// Writes text to stdout, whole; an error of stdout (closed pipe, full disk) becomes exit code 3.
int print(std::string_view text);
int print_json(const Json& document);

// Reports an error (on stdout as {"error": ...} with `json`, else on stderr) and returns its exit
// code.
int print_error(const Error& error, bool json);
Json to_json(const Error& error);
// The same for the diagnostics of a file; exit code 2.
int print_diagnostics(const std::vector<recipe::Diagnostic>& diagnostics, bool json);
Json to_json(const recipe::Diagnostic& diagnostic);

// Where runs are kept unless --runs-dir says otherwise: $ANVIL_RUNS, else "runs" under
// base::state_home().
std::string default_runs_dir();

// The index of all runs; `runs_dir` is what a lost index is rebuilt from.
Result<evidence::RunIndex> open_index(const std::string& runs_dir);

// A run directory given as a path, or as a run id (or a unique beginning of one) in the index or
// the runs folder.
Result<std::string> find_run(const std::string& path_or_id, const std::string& runs_dir);

// Columns that line up, for people. Rows may be ragged.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace anvil::app
