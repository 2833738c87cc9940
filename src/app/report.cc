#include "report/report.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/app.h"
#include "base/files.h"

namespace anvil::app {

namespace {
struct Options {
  std::string run;
  std::string runs_dir = default_runs_dir();
  std::string format = "html";
  std::string output;
  bool json = false;
};

int run_report(const Options& options) {
  auto directory = find_run(options.run, options.runs_dir);
  if (!directory) return print_error(directory.error(), options.json);
  auto reader = evidence::RunReader::open(*directory);
  if (!reader) return print_error(reader.error(), options.json);
  const auto format = options.format == "html" ? report::Format::kHtml
                      : options.format == "md" ? report::Format::kMarkdown
                                               : report::Format::kTerminal;
  auto text = report::render(*reader, format);
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
  CLI::App* command = root.add_subcommand("report", "Render a run as HTML, Markdown or text");
  command->add_option("RUN_DIR", options->run, "Run directory, or the id of a run")->required();
  command->add_option("--format", options->format, "html, md or term")
      ->check(CLI::IsMember({"html", "md", "term"}));
  command->add_option("-o,--output", options->output, "File to write; standard output if absent");
  command->add_option("--runs-dir", options->runs_dir, "Where runs are looked up by id");
  command->add_flag("--json", options->json, "One JSON object on stdout");
  command->footer(
      "Example:\n  anvil report runs/20261130T172047Z-gemma-3-270m-1a2b3c --format term");
  command->callback(
      [options, &context] { context.command = [options] { return run_report(*options); }; });
}

}  // namespace anvil::app
