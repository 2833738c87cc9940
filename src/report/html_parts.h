#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "report/facts.h"
#include "report/html.h"
#include "report/view.h"

// The pieces of the HTML page. Each section function returns its body; where a run holds nothing
// for it, a sentence that says so.
namespace anvil::report {

// A table in its own horizontally scrolling container. Class "stack" turns its rows into lists on
// narrow screens, "titled" shows the caption (else only screen readers meet it). Lifecycle: head(),
// then row()/cell...() per row, then finish().
class Table {
 public:
  struct Column {
    Markup title;
    bool number = false;
  };
  Table(Markup classes, Markup caption);
  Table& head(std::initializer_list<Column> columns);
  Table& row(Markup classes = "");
  Table& cell(std::string_view words, Markup classes = "");
  // Right-aligned; `sort` orders the rows when it is given (the words may carry a unit or a note).
  Table& number(std::string_view words, std::optional<double> sort = {});
  Table& figure(const Figure& figure, std::string (*format)(double) = nullptr);
  Table& html(const Html& content, Markup classes = "");
  bool empty() const { return rows_ == 0; }
  Html finish();

 private:
  Html out_;
  void open_cell(std::string_view classes);

  int rows_ = 0;
  size_t column_ = 0;
  std::vector<Markup> labels_;  // of a table that becomes a list on narrow screens
  bool stacks_ = false;
};

Html badge(std::string_view words, Tone tone);
// A JSON pointer or an endpoint, with places where it may break.
Html path_words(std::string_view path);
Html empty_state(std::string_view words);
Html note(std::string_view words);
// A verdict word of checks, gates, identity and fingerprint in its colour.
Html verdict_badge(std::string_view verdict);
// Foreign text in a block of its own, cut after `limit` bytes with a note that names the artifact.
Html text_block(std::string_view text, size_t limit, std::string_view artifact);

Html verdict_strip(const Facts& facts);
Html subject_section(const Facts& facts);
Html chain_section(const Facts& facts);
Html gates_section(const Facts& facts);
Html identity_section(const Facts& facts);
Html fingerprint_section(const Facts& facts);
Html checks_section(const Facts& facts);
Html lanes_section(const Facts& facts);
// Whether the numbers of one lane can be believed: reasons against, warnings, and what was checked.
Html validity_strip(const Facts& facts, const Json& lane);
// Nothing where no lane declares objectives.
Html goodput_table(const Json& lanes);
Html timeline_section(const Facts& facts);
Html ladder_section(const Facts& facts);
Html hardware_section(const Facts& facts);
Html startup_section(const Facts& facts);
Html stop_section(const Facts& facts);
Html environment_section(const Facts& facts);
Html failures_section(const Facts& facts);
Html log_section(const Facts& facts);
Html definitions_section();
// Our metrics beside the names of vLLM bench, GuideLLM and AIPerf.
Html names_section();
Html verify_section(const Facts& facts);

struct Section {
  Markup id, title;
  Html body;
};
// The document around a page: style, contents, script. `kind` says what the page is ("qualification
// report"), `below` stands under the heading, before the sections.
std::string document(std::string_view title, Markup kind, std::string_view heading,
                     std::string_view subheading, const Html& below,
                     const std::vector<Section>& sections);

// The whole page.
std::string html_page(const Facts& facts);
std::string markdown_page(const Facts& facts);
std::string terminal_page(const Facts& facts, bool colour, int columns);

}  // namespace anvil::report
