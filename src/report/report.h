#pragma once

#include <string>

#include "base/result.h"
#include "evidence/campaign.h"
#include "evidence/run_reader.h"

namespace anvil::report {

enum class Format { kHtml, kMarkdown, kTerminal };

// What a reader's terminal can show; ignored by the other formats.
struct TerminalOptions {
  bool colour = false;
  int columns = 80;
};

// A pure function of the run's evidence (no clock, no environment): the same run renders to the
// same bytes, before and after it is sealed. Works on sealed runs, on runs that failed before
// anything was measured and on incomplete ones; what a run lacks is said in its place.
// docs/report.md describes the page.
Result<std::string> render(const evidence::RunReader& run, Format format,
                           const TerminalOptions& terminal = {});

// The page of a campaign: a pure function of its campaign.json, its runs' results and its
// comparison (evidence::derive_comparison). Whether the campaign was ended does not enter, so that
// the page is the same before and after its last journal line.
Result<std::string> render_campaign(const evidence::Campaign& campaign, const Json& comparison);
Result<std::string> render_campaign_as(const evidence::Campaign& campaign, const Json& comparison,
                                       Format format, const TerminalOptions& terminal = {});

}  // namespace anvil::report
