#include "evidence/import/import.h"

namespace anvil::evidence::imported {

size_t Reanalysis::count(Verdict verdict) const {
  return static_cast<size_t>(std::count_if(
      figures.begin(), figures.end(), [&](const Figure& one) { return one.verdict == verdict; }));
}

Result<Reanalysis> reanalyse(const std::string& directory) {
  Reanalysis out;
  out.campaign = TRY(read_campaign(directory));
  out.figures = all_figures(out.campaign);
  out.findings = all_findings(out.campaign);
  return out;
}

Json to_json(const Reanalysis& reanalysis) {
  Json figures = Json::array(), findings = Json::array(), files = Json::array();
  for (const auto& figure : reanalysis.figures) figures.push_back(to_json(figure));
  for (const auto& finding : reanalysis.findings) findings.push_back(to_json(finding));
  for (const auto& document : reanalysis.campaign.documents) {
    Json problems = Json::array();
    for (const auto& problem : document->problems)
      problems.push_back({{"pointer", problem.pointer}, {"what", problem.what}});
    files.push_back({{"file", document->file},
                     {"kind", document->kind},
                     {"schema", document->schema},
                     {"sha256", document->sha256},
                     {"problems", problems}});
  }
  const auto rows = reanalysis.campaign.rows();
  const auto incomplete =
      std::count_if(rows.begin(), rows.end(), [](const Row* row) { return !row->complete(); });
  return {{"ok", reanalysis.campaign.problems() == 0},
          {"figures", figures},
          {"findings", findings},
          {"rows", rows.size()},
          {"incomplete_rows", incomplete},
          {"files", files}};
}

std::string rows_as_lines(const Reanalysis& reanalysis) {
  std::string out;
  int64_t seq = 0;
  for (const Row* row : reanalysis.campaign.rows()) out += to_line(to_request_row(*row, seq++));
  return out;
}

}  // namespace anvil::evidence::imported
