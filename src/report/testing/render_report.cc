#include <cstdio>
#include <string>

#include "base/files.h"
#include "evidence/campaign.h"
#include "evidence/run_reader.h"
#include "report/report.h"

namespace {
anvil::Result<std::string> render_folder(const std::string& folder, anvil::report::Format format) {
  if (anvil::evidence::is_campaign(folder)) {
    const auto campaign = TRY(anvil::evidence::read_campaign(folder));
    return anvil::report::render_campaign_as(
        campaign, TRY(anvil::evidence::derive_comparison(campaign)), format);
  }
  return anvil::report::render(TRY(anvil::evidence::RunReader::open(folder)), format);
}
}  // namespace

// anvil_render_report RUN_OR_CAMPAIGN_DIR html|md|term OUT
int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: anvil_render_report RUN_OR_CAMPAIGN_DIR html|md|term OUT\n");
    return 2;
  }
  const std::string name = argv[2];
  const auto format = name == "md"     ? anvil::report::Format::kMarkdown
                      : name == "term" ? anvil::report::Format::kTerminal
                                       : anvil::report::Format::kHtml;
  const auto text = render_folder(argv[1], format);
  if (!text) {
    std::fprintf(stderr, "%s\n", anvil::base::to_string(text.error()).c_str());
    return 1;
  }
  const auto written = anvil::base::write_file_atomic(argv[3], *text);
  if (!written) {
    std::fprintf(stderr, "%s\n", anvil::base::to_string(written.error()).c_str());
    return 3;
  }
  return 0;
}
