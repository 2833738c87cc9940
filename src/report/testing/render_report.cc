#include <cstdio>
#include <string>

#include "base/files.h"
#include "evidence/run_reader.h"
#include "report/report.h"

// anvil_render_report RUN_DIR html|md|term OUT
int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: anvil_render_report RUN_DIR html|md|term OUT\n");
    return 2;
  }
  const std::string name = argv[2];
  const auto format = name == "md"     ? anvil::report::Format::kMarkdown
                      : name == "term" ? anvil::report::Format::kTerminal
                                       : anvil::report::Format::kHtml;
  const auto run = anvil::evidence::RunReader::open(argv[1]);
  if (!run) {
    std::fprintf(stderr, "%s\n", anvil::base::to_string(run.error()).c_str());
    return 3;
  }
  const auto text = anvil::report::render(*run, format);
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
