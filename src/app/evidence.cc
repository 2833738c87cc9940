#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/app.h"
#include "base/files.h"
#include "base/strings.h"
#include "evidence/import/import.h"

namespace anvil::app {

namespace {

using evidence::imported::Reanalysis;
using evidence::imported::Verdict;

struct Options {
  std::string directory;
  std::string out;
  std::string rows;
  bool json = false;
};

std::string plain_name(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return base::base_name(path);
}

// The line that makes the document, without the paths of one machine.
std::string command_line(const Options& options) {
  return "anvil evidence import " + base::shell_quote(plain_name(options.directory)) + " -o " +
         base::shell_quote(plain_name(options.out));
}

std::string summary(const Reanalysis& all) {
  std::string text = std::to_string(all.campaign.documents.size()) + " files, " +
                     std::to_string(all.campaign.rows().size()) + " requests, " +
                     std::to_string(all.figures.size()) +
                     " published figures: " + std::to_string(all.count(Verdict::kReproduced)) +
                     " reproduced, " + std::to_string(all.count(Verdict::kDiffers)) + " differ, " +
                     std::to_string(all.count(Verdict::kNotDerivable)) + " not derivable\n";
  std::vector<std::vector<std::string>> rows = {{"DIFFERS", "PUBLISHED", "DERIVED", "IN"}};
  for (const auto& figure : all.figures)
    if (figure.verdict == Verdict::kDiffers)
      rows.push_back({figure.figure, evidence::imported::shown(figure.published),
                      evidence::imported::shown(figure.derived), figure.group});
  if (rows.size() > 1) text += "\n" + table(rows);
  if (!all.findings.empty()) text += "\nFindings:\n";
  for (const auto& finding : all.findings) text += "  - " + finding.title + "\n";
  return text;
}

int run_import(const Options& options) {
  auto all = evidence::imported::reanalyse(options.directory);
  if (!all) {
    print_error(all.error(), options.json);
    return base::kExitUsage;
  }
  if (!options.out.empty())
    if (auto wrote = base::write_file_atomic(
            options.out, evidence::imported::markdown(*all, command_line(options)));
        !wrote)
      return print_error(wrote.error(), options.json);
  if (!options.rows.empty())
    if (auto wrote = base::write_file_atomic(options.rows, evidence::imported::rows_as_lines(*all));
        !wrote)
      return print_error(wrote.error(), options.json);
  if (!options.json)
    for (const auto& document : all->campaign.documents)
      for (const auto& problem : document->problems)
        std::fprintf(stderr, "anvil: %s: %s\n",
                     evidence::imported::place(*document, problem.pointer).c_str(),
                     problem.what.c_str());
  const int printed =
      options.json ? print_json(evidence::imported::to_json(*all)) : print(summary(*all));
  if (printed != base::kExitOk) return printed;
  return all->campaign.problems() == 0 ? base::kExitOk : base::kExitUsage;
}

}  // namespace

void add_evidence(CLI::App& root, Context& context) {
  CLI::App* group =
      root.add_subcommand("evidence", "Read what other campaigns published, and derive it again");
  group->require_subcommand(1);
  group->footer("Example:\n  anvil evidence import r16-evidence -o r16-reanalysis.md");
  auto options = std::make_shared<Options>();
  CLI::App* command = group->add_subcommand(
      "import", "Derive the figures of a published campaign again from its raw files");
  command->add_option("DIR", options->directory, "Folder with the campaign's JSON files")
      ->required();
  command->add_option("-o,--output", options->out, "Write the whole reanalysis as Markdown");
  command->add_option("--rows", options->rows,
                      "Write every request as a line in the form of requests.jsonl");
  command->add_flag("--json", options->json, "One JSON object on stdout");
  command->footer(
      "Example:\n  anvil evidence import r16-evidence -o r16-reanalysis.md\n\n"
      "Every published figure is reproduced, differs or is not derivable; each is an answer, and "
      "the "
      "exit code is 0.\nExit code 2: a file that could not be read, or not whole; each is named "
      "with "
      "its JSON pointer, and the rest is\nderived all the same.");
  command->callback(
      [options, &context] { context.command = [options] { return run_import(*options); }; });
}

}  // namespace anvil::app
