#pragma once

#include <string>
#include <vector>

#include "evidence/import/figures.h"

namespace anvil::evidence::imported {

// What the raw records say about the campaign, computed from them. A finding exists only where the
// files show it: nothing in it is a fixed statement about a fixed campaign.
struct Finding {
  std::string id;                               // stable word
  std::string title;                            // one sentence, with its numbers
  std::vector<std::string> text;                // paragraphs
  std::vector<std::vector<std::string>> table;  // the first row is the heading; may be empty
  std::vector<std::string> evidence;            // "file#/pointer"
  Json values = Json::object();                 // the numbers, for programs
};
Json to_json(const Finding& finding);

std::vector<Finding> all_findings(const Campaign& campaign);

// The runs of one side of a comparison.
struct ArmRuns {
  std::string name;
  std::string model;
  std::vector<const CapacityRun*> listed;       // the ones that the published medians are from
  std::vector<const CapacityRun*> all;          // every run of this model
  std::vector<const Row*> listed_rows() const;  // that succeeded
  std::vector<const Row*> all_rows() const;
};
// Both sides, the treatment first; empty when a listed run is not in the directory.
std::vector<ArmRuns> arms_of(const Campaign& campaign, const Comparison& comparison);

// "+5.9 %".
std::string percent(double change, int decimals = 1);
// A whole number with separators: "138,459".
std::string grouped(int64_t value);

// Each adds its findings, in the order of the document.
void add_timing_findings(const Campaign& campaign, std::vector<Finding>& findings);
void add_comparison_findings(const Campaign& campaign, std::vector<Finding>& findings);
void add_ladder_findings(const Campaign& campaign, std::vector<Finding>& findings);
void add_check_findings(const Campaign& campaign, std::vector<Finding>& findings);
void add_hardware_findings(const Campaign& campaign, std::vector<Finding>& findings);

}  // namespace anvil::evidence::imported
