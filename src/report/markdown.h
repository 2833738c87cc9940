#pragma once

#include <string>
#include <string_view>
#include <vector>

// What the Markdown formats write with.
namespace anvil::report {

// Collects GitHub-flavoured Markdown. Foreign words pass through safe_markdown(), code through
// markdown_code().
class Markdown {
 public:
  void heading(std::string_view words) { out_ += "\n### " + std::string(words) + "\n\n"; }
  void line(std::string_view words) { out_ += std::string(words) + "\n"; }
  void row(const std::vector<std::string>& cells);
  // `shape`: one character per column, 'l' or 'r'.
  void head(const std::vector<std::string>& cells, std::string_view shape);
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// One line of at most `limit` characters in which nothing is markup; safe in a table cell.
std::string safe_markdown(std::string_view text, size_t limit = 160);
// The words as code; nothing of nothing.
std::string markdown_code(std::string_view text);

}  // namespace anvil::report
