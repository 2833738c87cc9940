#include <algorithm>

#include "report/markdown.h"
#include "report/text.h"

namespace anvil::report {

void Markdown::row(const std::vector<std::string>& cells) {
  out_ += "|";
  for (const auto& cell : cells)
    out_ += " " + (cell.empty() ? std::string("\xE2\x80\x94") : cell) + " |";
  out_ += "\n";
}

void Markdown::head(const std::vector<std::string>& cells, std::string_view shape) {
  row(cells);
  out_ += "|";
  for (const char c : shape) out_ += c == 'r' ? " ---: |" : " --- |";
  out_ += "\n";
}

std::string safe_markdown(std::string_view text, size_t limit) {
  return escape_markdown(ellipsis(one_line(text), limit));
}

std::string markdown_code(std::string_view text) {
  std::string inner = one_line(text);
  std::replace(inner.begin(), inner.end(), '`', '\'');
  std::replace(inner.begin(), inner.end(), '|', '/');
  return inner.empty() ? std::string() : "`" + inner + "`";
}

}  // namespace anvil::report
