#include "qualify/qualify.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/app.h"
#include "app/progress.h"
#include "app/run_inputs.h"
#include "base/files.h"
#include "report/report.h"

namespace anvil::app {

namespace {

struct Options {
  std::string recipe, policy, suite, host;
  std::string runs_dir = default_runs_dir();
  bool json = false;
  bool quiet = false;
};

// The object that --json promises, with nothing in it.
Json empty_answer() {
  return {{"run", nullptr},           {"run_dir", nullptr},     {"decision", nullptr},
          {"reasons", Json::array()}, {"gates", Json::array()}, {"failed_step", nullptr}};
}

int refuse(const Error& error, const char* step, bool json) {
  if (!json) return print_error(error, false);
  Json answer = empty_answer();
  answer["failed_step"] = step;
  answer["reasons"].push_back(base::to_string(error));
  answer["error"] = to_json(error);
  print_json(answer);
  return base::describe(error.kind).exit_code;
}

int refuse(const std::vector<recipe::Diagnostic>& diagnostics, bool json) {
  if (!json) return print_diagnostics(diagnostics, false);
  Json answer = empty_answer();
  answer["failed_step"] = "load";
  answer["diagnostics"] = Json::array();
  for (const auto& diagnostic : diagnostics) {
    answer["reasons"].push_back(recipe::to_string(diagnostic));
    answer["diagnostics"].push_back(to_json(diagnostic));
  }
  print_json(answer);
  return base::kExitUsage;
}

int run_qualify(const Options& options, const base::Cancel& cancel) {
  auto policy = load_policy(options.policy);
  auto suite = load_suite(options.suite, policy.value);
  RunInputs run = assemble(recipe::load_recipe(options.recipe), std::move(policy), std::move(suite),
                           options.host, options.runs_dir);
  if (run.error) return refuse(*run.error, "load", options.json);
  if (!run.inputs) return refuse(run.diagnostics, options.json);
  if (!options.json && !options.quiet) print_diagnostics(run.diagnostics, false);
  Progress progress(options.quiet ? Progress::Mode::kQuiet : Progress::detect());
  auto outcome = qualify::qualify(*run.inputs, progress, cancel);
  if (!outcome) return refuse(outcome.error(), "freeze", options.json);

  index_run(outcome->run_dir, options.runs_dir, options.quiet);
  const Json& decision = outcome->decision;
  bool gate_failed = false;
  for (const auto& gate : decision["gates"]) gate_failed = gate_failed || gate["verdict"] != "pass";
  const bool ok = !gate_failed && outcome->failed_step.empty();
  int printed = base::kExitOk;
  if (options.json) {
    Json answer = empty_answer();
    answer["run"] = outcome->run;
    answer["run_dir"] = outcome->run_dir;
    answer["decision"] = decision["decision"];
    answer["reasons"] = decision["reasons"];
    answer["gates"] = decision["gates"];
    if (!outcome->failed_step.empty()) answer["failed_step"] = outcome->failed_step;
    if (outcome->failure) answer["error"] = to_json(*outcome->failure);
    printed = print_json(answer);
  } else {
    auto reader = evidence::RunReader::open(outcome->run_dir);
    auto text = reader ? report::render(*reader, report::Format::kTerminal,
                                        {isatty(STDOUT_FILENO) != 0, 80})
                       : Result<std::string>(fail(reader.error()));
    if (!text) return print_error(text.error(), false);
    printed = print(*text + "\nreport  " + base::join_path(outcome->run_dir, "report.html") +
                    "\nverify  anvil verify " + outcome->run_dir + "\n");
  }
  if (printed != base::kExitOk) return printed;
  return ok ? base::kExitOk : base::kExitGate;
}

}  // namespace

void add_qualify(CLI::App& root, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = root.add_subcommand(
      "qualify", "Start a recipe, prove it, measure it, decide by a frozen policy");
  command->add_option("RECIPE", options->recipe, "Recipe file")->required();
  command
      ->add_option(
          "--policy", options->policy,
          "Policy file (or the name of a shipped one): the gates, frozen before the first request")
      ->required();
  command->add_option("--suite", options->suite,
                      "Suite file (or the name of a shipped one): checks, lanes, ladder; default: "
                      "the policy's suite, else 'standard'");
  command->add_option("--host", options->host, "Private host file: which GPU is which role");
  command->add_option("--runs-dir", options->runs_dir, "Where the run directory is made");
  command->add_flag("--json", options->json, "One JSON object on stdout, at the end");
  command->add_flag("-q,--quiet", options->quiet, "No progress on stderr");
  command->footer(
      "Example:\n"
      "  anvil qualify recipes/gemma-3-270m.toml --policy policies/quickstart.toml --suite "
      "suites/quickstart.toml\n\n"
      "Exit code 0 when every gate passed, 1 when a gate failed or was not measured or a step "
      "failed (the evidence is\n"
      "kept), 2 for a file with errors, 3 when the run could not be kept. Ctrl-C once stops in "
      "order, twice at once.");
  command->callback([options, &context] {
    context.command = [options, &context] { return run_qualify(*options, context.cancel); };
  });
}

}  // namespace anvil::app
