#include "evidence/import/findings.h"

#include <cmath>

namespace anvil::evidence::imported {

Json to_json(const Finding& finding) {
  return {{"id", finding.id},       {"title", finding.title},       {"text", finding.text},
          {"table", finding.table}, {"evidence", finding.evidence}, {"values", finding.values}};
}

std::string percent(double change, int decimals) {
  std::string out = fixed(change, decimals);
  return (out.starts_with('-') ? out : "+" + out) + " %";
}

std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

namespace {
std::vector<const Row*> rows_of(const std::vector<const CapacityRun*>& runs) {
  std::vector<const Row*> out;
  for (const auto* run : runs)
    for (const Row* row : run->ok_rows()) out.push_back(row);
  return out;
}
}  // namespace

std::vector<const Row*> ArmRuns::listed_rows() const {
  return rows_of(listed);
}
std::vector<const Row*> ArmRuns::all_rows() const {
  return rows_of(all);
}

std::vector<ArmRuns> arms_of(const Campaign& campaign, const Comparison& comparison) {
  std::vector<ArmRuns> out;
  for (const Arm* arm : {&comparison.treatment, &comparison.control}) {
    ArmRuns runs{arm->name, arm->model, {}, {}};
    for (const auto& file : arm->artifacts) {
      const CapacityRun* run = campaign.run(file);
      if (!run || run->ok_rows().empty()) return {};
      runs.listed.push_back(run);
    }
    if (runs.listed.empty()) return {};
    for (const auto& run : campaign.capacity)
      if (run.model == arm->model) runs.all.push_back(&run);
    out.push_back(std::move(runs));
  }
  return out;
}

std::vector<Finding> all_findings(const Campaign& campaign) {
  std::vector<Finding> findings;
  add_timing_findings(campaign, findings);
  add_comparison_findings(campaign, findings);
  add_ladder_findings(campaign, findings);
  add_check_findings(campaign, findings);
  add_hardware_findings(campaign, findings);
  return findings;
}

}  // namespace anvil::evidence::imported
