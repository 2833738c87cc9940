// The reanalysis as a document for people.
#include "base/strings.h"
#include "evidence/import/import.h"

namespace anvil::evidence::imported {

namespace {

// A cell: no line breaks, and no character that ends it.
std::string cell(std::string text) {
  return base::replace_all(base::replace_all(std::move(text), "\n", " "), "|", "\\|");
}

void add_line(std::string& out, const std::vector<std::string>& cells) {
  for (const auto& one : cells) out += "| " + cell(one) + " ";
  out += "|\n";
}

void add_table(std::string& out, const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return;
  add_line(out, rows.front());
  for (size_t i = 0; i < rows.front().size(); ++i) out += "|---";
  out += "|\n";
  for (size_t i = 1; i < rows.size(); ++i) add_line(out, rows[i]);
  out += "\n";
}

std::string verdict_text(Verdict verdict) {
  return verdict == Verdict::kReproduced ? "reproduced" : "**" + std::string(name(verdict)) + "**";
}

// A derived value with the digits of what it is compared with.
std::string derived_text(const Figure& figure) {
  if (figure.published.is_string() && figure.derived.is_number()) {
    const auto printed = figure.published.get<std::string>();
    const size_t dot = printed.rfind('.');
    const int decimals = dot == std::string::npos ? 0 : static_cast<int>(printed.size() - dot - 1);
    return fixed(figure.derived.get<double>(), decimals);
  }
  return shown(figure.derived);
}

std::vector<std::string> figure_line(const Figure& figure, bool with_group) {
  std::vector<std::string> line;
  if (with_group) line.push_back(figure.group);
  for (const std::string& text : {figure.figure, shown(figure.published), derived_text(figure),
                                  verdict_text(figure.verdict), figure.because})
    line.push_back(text);
  return line;
}

std::vector<std::string> groups_of(const std::vector<Figure>& figures) {
  std::vector<std::string> groups;
  for (const auto& figure : figures)
    if (std::find(groups.begin(), groups.end(), figure.group) == groups.end())
      groups.push_back(figure.group);
  return groups;
}

bool printed_elsewhere(const Figure& figure) {
  return figure.where.starts_with("published table");
}

void add_summary(std::string& out, const Reanalysis& all) {
  const auto rows = all.campaign.rows();
  const auto complete =
      std::count_if(rows.begin(), rows.end(), [](const Row* row) { return row->complete(); });
  out += "## Summary\n\n";
  out += std::to_string(all.campaign.documents.size()) + " files hold " +
         std::to_string(rows.size()) + " requests, of which " + std::to_string(complete) +
         " have every stamp and count. They and the tables printed about them state " +
         std::to_string(all.figures.size()) + " figures:\n\n";
  add_table(out, {{"verdict", "figures"},
                  {"reproduced", std::to_string(all.count(Verdict::kReproduced))},
                  {"differs", std::to_string(all.count(Verdict::kDiffers))},
                  {"not derivable", std::to_string(all.count(Verdict::kNotDerivable))}});
  if (all.findings.empty()) return;
  out +=
      "That a figure is reproduced says that the arithmetic is right, not that it means what it "
      "is called. What the records say:\n\n";
  size_t number = 0;
  for (const auto& finding : all.findings)
    out += std::to_string(++number) + ". " + finding.title + ".\n";
  out += "\n";
}

void add_figures(std::string& out, const Reanalysis& all) {
  out += "## Published figures\n\n";
  const auto heading = [](bool with_group) {
    std::vector<std::string> line;
    if (with_group) line.push_back("in");
    for (const char* text : {"figure", "published", "derived", "verdict", "from"})
      line.emplace_back(text);
    return line;
  };
  for (const auto& group : groups_of(all.figures)) {
    std::vector<std::vector<std::string>> table = {heading(false)};
    for (const auto& figure : all.figures) {
      const bool compared = figure.where.find("comparison") != std::string::npos;
      if (figure.group == group && (printed_elsewhere(figure) || compared))
        table.push_back(figure_line(figure, false));
    }
    if (table.size() == 1) continue;
    out += "### " + group + "\n\n";
    add_table(out, table);
  }
  out +=
      "### Aggregates inside the files\n\n"
      "Each file also states aggregates of its own records; `--json` lists every one.\n\n";
  std::vector<std::vector<std::string>> table = {
      {"file", "figures", "reproduced", "differs", "not derivable"}};
  std::vector<std::vector<std::string>> rest = {heading(true)};
  for (const auto& group : groups_of(all.figures)) {
    size_t counts[3] = {0, 0, 0};
    for (const auto& figure : all.figures) {
      if (figure.group != group || printed_elsewhere(figure) ||
          figure.where.find("comparison") != std::string::npos)
        continue;
      ++counts[static_cast<size_t>(figure.verdict)];
      if (figure.verdict != Verdict::kReproduced) rest.push_back(figure_line(figure, true));
    }
    const size_t total = counts[0] + counts[1] + counts[2];
    if (total > 0)
      table.push_back({group, std::to_string(total), std::to_string(counts[0]),
                       std::to_string(counts[1]), std::to_string(counts[2])});
  }
  add_table(out, table);
  if (rest.size() == 1) return;
  out += "Those that differ or are not derivable:\n\n";
  add_table(out, rest);
}

void add_findings(std::string& out, const Reanalysis& all) {
  if (all.findings.empty()) return;
  out += "## Findings\n\n";
  size_t number = 0;
  for (const auto& finding : all.findings) {
    out += "### " + std::to_string(++number) + ". " + finding.title + "\n\n";
    for (const auto& paragraph : finding.text) out += paragraph + "\n\n";
    add_table(out, finding.table);
    out += "Evidence: ";
    for (size_t i = 0; i < finding.evidence.size(); ++i)
      out += (i ? ", `" : "`") + finding.evidence[i] + "`";
    out += "\n\n";
  }
}

void add_files(std::string& out, const Reanalysis& all) {
  out += "## Files\n\n";
  std::vector<std::vector<std::string>> table = {{"file", "kind", "SHA-256", "problems"}};
  for (const auto& document : all.campaign.documents) {
    std::string problems;
    for (const auto& problem : document->problems)
      problems += (problems.empty() ? "" : "; ") + problem.pointer + " " + problem.what;
    table.push_back(
        {document->file, document->kind, document->sha256, problems.empty() ? "none" : problems});
  }
  add_table(out, table);
}

constexpr std::string_view kMethod =
    "## Method\n\n"
    "- Every file is read by the schema that it names. A member that is missing or of another type "
    "is a problem of that file, named with its JSON pointer; nothing is guessed in its place.\n"
    "- Every request that a file records becomes one row. A row that lacks a stamp or a count is "
    "incomplete, stays in the record, and enters no figure that needs what it lacks.\n"
    "- Every published figure is derived again from rows and counters, never from another "
    "published "
    "figure. Where only a summary of the records was kept, a printed figure is compared with the "
    "summary and says so, and the summary's own numbers are not derivable. Percentiles are nearest "
    "rank, the median of three runs is the middle one, as in the publication.\n"
    "- A figure printed in a table is reproduced when the derived value lies within half a unit of "
    "the last printed digit. A whole number in a file has to be equal; another number agrees "
    "within "
    "1e-9 of its size. `--json` has the tolerance of each.\n"
    "- A figure is not derivable when the records that it came from were not kept.\n"
    "- Findings are computed from the files; where the files do not show one it is not written.\n"
    "\n"
    "## Definitions\n\n"
    "| name | meaning |\n"
    "|---|---|\n"
    "| TTFO, time to first output | request start to the first reasoning or visible text |\n"
    "| ttft, time to first visible output | request start to the first visible text |\n"
    "| e2e | request start to the end of the stream |\n"
    "| generation | e2e less TTFO |\n"
    "| decode_tok_s | (completion tokens - 1) / generation |\n"
    "| mean_inter_token_latency_ms | generation / (completion tokens - 1) |\n"
    "| effective_prefill_tok_s | prompt tokens, cached ones too, / TTFO |\n"
    "| computed / TTFO | prompt tokens that were not cached / TTFO |\n"
    "| throughput_tok_s | completion tokens of requests that succeeded / wall time of the run |\n"
    "| cached | prompt tokens that the engine took from its prefix cache, by its own count |\n"
    "\n"
    "Anvil's own definitions, which differ from these, are in [Measurement](measurement.md).\n";

}  // namespace

std::string markdown(const Reanalysis& all, std::string_view command) {
  std::string out = "# Reanalysis of " + all.campaign.name + "\n\n";
  out += "Made by `" + std::string(command) +
         "` from the raw files of a published campaign. Every "
         "number here is computed from those files.\n\n";
  add_summary(out, all);
  add_figures(out, all);
  add_findings(out, all);
  out += kMethod;
  out += "\n";
  add_files(out, all);
  out.pop_back();
  return out;
}

}  // namespace anvil::evidence::imported
