#include "report/report.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/app.h"
#include "base/files.h"
#include "evidence/campaign.h"
#include "evidence/flat_row.h"

namespace anvil::app {

namespace {
struct Options {
  std::string run;
  std::string runs_dir = default_runs_dir();
  std::string format = "html";
  std::string output;
  bool json = false;
};

bool wants_rows(const Options& options) {
  return options.format == "csv" || options.format == "jsonl";
}

// One line for each measured request of a run: warm-up, checks and probes left out.
Result<std::string> rows_text(const evidence::RunReader& run, bool csv) {
  std::string text = csv ? evidence::csv_header() : std::string();
  TRY(run.for_each_row([&](const evidence::RequestRow& row) -> Result<void> {
    if (row.purpose != evidence::Purpose::kLane) return {};
    text += csv ? evidence::csv_line(row) : base::canonical(evidence::flat_row(row)) + "\n";
    return {};
  }));
  return text;
}

Result<std::string> campaign_text(const std::string& directory, const Options& options) {
  if (wants_rows(options))
    return fail(
        Kind::kUsage, Side::kClient,
        directory + " is a campaign, and " + options.format + " holds the requests of one run",
        "name one of its runs: " + base::join_path(directory, "runs") + "/...");
  const auto campaign = TRY(evidence::read_campaign(directory));
  const Json comparison = TRY(evidence::derive_comparison(campaign));
  return report::render_campaign_as(campaign, comparison,
                                    options.format == "html" ? report::Format::kHtml
                                    : options.format == "md" ? report::Format::kMarkdown
                                                             : report::Format::kTerminal);
}

Result<std::string> run_text(const std::string& directory, const Options& options) {
  const auto reader = TRY(evidence::RunReader::open(directory));
  if (wants_rows(options)) return rows_text(reader, options.format == "csv");
  return report::render(reader, options.format == "html" ? report::Format::kHtml
                                : options.format == "md" ? report::Format::kMarkdown
                                                         : report::Format::kTerminal);
}

int run_report(const Options& options) {
  const auto directory = find_run(options.run, options.runs_dir);
  if (!directory) return print_error(directory.error(), options.json);
  const auto text = evidence::is_campaign(*directory) ? campaign_text(*directory, options)
                                                      : run_text(*directory, options);
  if (!text) return print_error(text.error(), options.json);
  if (options.output.empty() || options.output == "-") {
    if (options.json)
      return print_json({{"run_dir", *directory}, {"format", options.format}, {"report", *text}});
    return print(*text);
  }
  if (auto done = base::write_file_atomic(options.output, *text); !done)
    return print_error(done.error(), options.json);
  if (options.json)
    return print_json({{"run_dir", *directory},
                       {"format", options.format},
                       {"file", options.output},
                       {"bytes", text->size()}});
  std::fprintf(stderr, "wrote %s, %zu bytes\n", options.output.c_str(), text->size());
  return base::kExitOk;
}
}  // namespace

void add_report(CLI::App& root, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      root.add_subcommand("report", "Render a run or a campaign, or export the requests of a run");
  command->add_option("RUN_DIR", options->run, "Directory or id of a run or of a campaign")
      ->required();
  command
      ->add_option("--format", options->format,
                   "html, md or term; of a run also csv or jsonl: a line for each measured request")
      ->check(CLI::IsMember({"html", "md", "term", "csv", "jsonl"}));
  command->add_option("-o,--output", options->output, "File to write; standard output if absent");
  command->add_option("--runs-dir", options->runs_dir, "Where runs are looked up by id");
  command->add_flag("--json", options->json, "One JSON object on stdout");
  command->footer(
      "Examples:\n  anvil report runs/20261130T172047Z-gemma-3-270m-1a2b3c --format term\n"
      "  anvil report runs/20261130T172047Z-gemma-3-270m-1a2b3c --format csv -o requests.csv\n"
      "  anvil report runs/20261130T180000Z-ab-plain-vs-ngram-3f9a2c --format md");
  command->callback(
      [options, &context] { context.command = [options] { return run_report(*options); }; });
}

}  // namespace anvil::app
