#include "report/report.h"

#include "report/facts.h"
#include "report/html_parts.h"

namespace anvil::report {

Result<std::string> render(const evidence::RunReader& run, Format format,
                           const TerminalOptions& terminal) {
  const Facts facts = TRY(gather(run));
  switch (format) {
    case Format::kHtml:
      return html_page(facts);
    case Format::kMarkdown:
      return markdown_page(facts);
    case Format::kTerminal:
      return terminal_page(facts, terminal.colour, terminal.columns);
  }
  return fail(Kind::kInternal, Side::kInternal, "an unknown report format was asked for");
}

}  // namespace anvil::report
