#include "evidence/verify.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/app.h"
#include "evidence/campaign.h"
#include "report/report.h"

namespace anvil::app {

namespace {
int run_verify(const std::string& run, const std::string& runs_dir, bool json) {
  auto directory = find_run(run, runs_dir);
  if (!directory) return print_error(directory.error(), json);
  const auto render = [](const evidence::RunReader& reader) {
    return report::render(reader, report::Format::kHtml);
  };
  auto outcome = evidence::is_campaign(*directory)
                     ? evidence::verify_campaign(*directory, render, report::render_campaign)
                     : evidence::verify(*directory, render);
  if (!outcome) return print_error(outcome.error(), json);
  int printed = base::kExitOk;
  if (json) {
    Json mismatches = Json::array();
    for (const auto& mismatch : outcome->mismatches)
      mismatches.push_back({{"where", mismatch.where},
                            {"recorded", mismatch.recorded},
                            {"recomputed", mismatch.recomputed}});
    printed = print_json({{"ok", outcome->ok},
                          {"complete", outcome->complete},
                          {"run_dir", *directory},
                          {"artifacts", outcome->artifacts},
                          {"numbers", outcome->numbers},
                          {"rows", outcome->rows},
                          {"mismatches", mismatches},
                          {"not_compared", outcome->not_compared}});
  } else {
    std::string text;
    for (const auto& mismatch : outcome->mismatches)
      text += mismatch.where + "\n  recorded    " + mismatch.recorded + "\n  recomputed  " +
              mismatch.recomputed + "\n";
    const std::string counts = std::to_string(outcome->artifacts) + " artifacts, " +
                               std::to_string(outcome->rows) + " request rows, " +
                               std::to_string(outcome->numbers) + " numbers recomputed";
    if (!outcome->ok)
      text +=
          "NOT OK: " + std::to_string(outcome->mismatches.size()) + " mismatches; " + counts + "\n";
    else if (!outcome->complete)
      text +=
          "INCOMPLETE: what is there is consistent, but the run was never sealed; " + counts + "\n";
    else
      text += "OK: " + counts + ", all equal\n";
    for (const auto& what : outcome->not_compared) text += "NOT COMPARED: " + what + "\n";
    printed = print(text);
  }
  if (printed != base::kExitOk) return printed;
  return outcome->ok && outcome->complete ? base::kExitOk : base::kExitGate;
}
}  // namespace

void add_verify(CLI::App& root, Context& context) {
  struct Options {
    std::string run;
    std::string runs_dir = default_runs_dir();
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = root.add_subcommand(
      "verify", "Recompute every number and hash of a run or campaign from its raw records");
  command->add_option("RUN_DIR", options->run, "Run directory, or the id of a run")->required();
  command->add_option("--runs-dir", options->runs_dir, "Where runs are looked up by id");
  command->add_flag("--json", options->json, "One JSON object on stdout");
  command->footer(
      "Example:\n  anvil verify runs/20261130T172047Z-gemma-3-270m-1a2b3c\n\n"
      "Exit code 0 only for a complete run in which everything agrees; 1 names each artifact and "
      "JSON pointer.");
  command->callback([options, &context] {
    context.command = [options] {
      return run_verify(options->run, options->runs_dir, options->json);
    };
  });
}

}  // namespace anvil::app
