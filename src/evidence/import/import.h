#pragma once

#include <string>
#include <string_view>

#include "evidence/import/campaign.h"
#include "evidence/import/findings.h"

namespace anvil::evidence::imported {

// A foreign campaign, read and derived again. Findings and figures stand on their own; the campaign
// holds the rows.
struct Reanalysis {
  Campaign campaign;
  std::vector<Figure> figures;
  std::vector<Finding> findings;

  size_t count(Verdict verdict) const;
};
// Reads the *.json files of a directory and derives everything. Only a directory that cannot be
// read, or without such a file, is an error; what is wrong with a file is among its problems.
Result<Reanalysis> reanalyse(const std::string& directory);

// {"ok","figures","findings","rows","incomplete_rows","files":[{"file","kind","schema","sha256",
// "problems":[{"pointer","what"}]}]}. `ok` says that every file could be read whole.
Json to_json(const Reanalysis& reanalysis);

// The whole reanalysis as a document. `command` is the line that makes it. The same files give the
// same bytes.
std::string markdown(const Reanalysis& reanalysis, std::string_view command);

// Every converted row in the form of requests.jsonl.
std::string rows_as_lines(const Reanalysis& reanalysis);

}  // namespace anvil::evidence::imported
