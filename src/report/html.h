#pragma once

#include <string>
#include <string_view>

#include "report/text.h"

namespace anvil::report {

// Markup that stands in this program's source. Only a literal converts to it, so nothing that came
// from an engine, a model or a file can enter a page as markup. (A consteval constructor would say
// it more strictly; clang 16 then loses the end of the full expression and destroys temporaries on
// paths that never made them.)
struct Markup {
  template <size_t N>
  constexpr Markup(const char (&literal)[N]) : text(literal, N - 1) {}
  template <size_t N>
  Markup(char (&buffer)[N]) = delete;
  std::string_view text;
};

// A piece of a page under construction. `<<` adds markup or finished pieces, text() adds anything
// else, escaped.
class Html {
 public:
  Html& operator<<(Markup markup) {
    out_ += markup.text;
    return *this;
  }
  Html& operator<<(const Html& piece) {
    out_ += piece.out_;
    return *this;
  }
  Html& text(std::string_view foreign) {
    out_ += escape_html(foreign);
    return *this;
  }
  // ` name="value"`.
  Html& attribute(Markup name, std::string_view value) {
    out_ += ' ';
    out_ += name.text;
    out_ += "=\"";
    out_ += escape_html(value);
    out_ += '"';
    return *this;
  }
  // The program's own style sheet and script, which are compiled in; nothing else may go here.
  Html& asset(std::string_view trusted) {
    out_ += trusted;
    return *this;
  }

  bool empty() const { return out_.empty(); }
  size_t size() const { return out_.size(); }
  const std::string& str() const { return out_; }

 private:
  std::string out_;
};

}  // namespace anvil::report
