#include "report/html_parts.h"

#include <algorithm>

#include "report/text.h"

namespace anvil::report {

Table::Table(Markup classes, Markup caption) {
  stacks_ = classes.text.find("stack") != std::string_view::npos;
  out_ << "<div class=\"scroll\" role=\"region\" tabindex=\"0\"";
  out_.attribute("aria-label", caption.text) << "><table";
  out_.attribute("class", classes.text) << "><caption>" << caption << "</caption>";
}

Table& Table::head(std::initializer_list<Column> columns) {
  out_ << "<thead><tr>";
  for (const Column& column : columns) {
    out_ << (column.number ? Markup("<th scope=\"col\" class=\"n\">")
                           : Markup("<th scope=\"col\">"))
         << column.title << "</th>";
    labels_.push_back(column.title);
  }
  out_ << "</tr></thead><tbody>";
  return *this;
}

Table& Table::row(Markup classes) {
  if (rows_++ > 0) out_ << "</tr>";
  column_ = 0;
  out_ << "<tr";
  if (!classes.text.empty()) out_.attribute("class", classes.text);
  out_ << ">";
  return *this;
}

void Table::open_cell(std::string_view classes) {
  out_ << "<td";
  if (!classes.empty()) out_.attribute("class", classes);
  if (stacks_ && column_ < labels_.size()) out_.attribute("data-l", labels_[column_].text);
  ++column_;
}

Table& Table::cell(std::string_view words, Markup classes) {
  Html content;
  content.text(words);
  return html(content, classes);
}

Table& Table::number(std::string_view words, std::optional<double> sort) {
  open_cell("n");
  if (sort) out_.attribute("data-v", fixed(*sort, 6));
  out_ << ">";
  out_.text(words) << "</td>";
  return *this;
}

Table& Table::figure(const Figure& figure, std::string (*format)(double)) {
  switch (figure.kind) {
    case Figure::Kind::kValue:
      return number(words_of(figure, format), figure.value);
    case Figure::Kind::kAbsent:
      open_cell("n quiet");
      out_ << ">none</td>";
      return *this;
    case Figure::Kind::kRefused:
      open_cell("n quiet refused");
      out_ << ">";
      out_.text(words_of(figure)) << "</td>";
      return *this;
    case Figure::Kind::kOurError:
      open_cell("n quiet refused");
      out_ << "><s>";
      out_.text(format ? format(figure.value) : report::figure(figure.value)) << "</s><small>";
      out_.text("our error is " + milliseconds(figure.client_error_ms)) << "</small></td>";
      return *this;
    case Figure::Kind::kBelowFloor:
      break;
  }
  open_cell("n marked");
  out_.attribute("data-v", fixed(figure.value, 6)) << ">";
  Figure bare = figure;
  bare.kind = Figure::Kind::kValue;
  out_.text(words_of(bare, format)) << "<small>";
  out_.text("median, n=" + std::to_string(figure.n) + " < " + std::to_string(figure.floor))
      << "</small></td>";
  return *this;
}

Table& Table::html(const Html& content, Markup classes) {
  open_cell(classes.text);
  out_ << ">" << content << "</td>";
  return *this;
}

Html Table::finish() {
  if (rows_ > 0) out_ << "</tr>";
  out_ << "</tbody></table></div>";
  return std::move(out_);
}

namespace {
Markup tone_class(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return "badge good";
    case Tone::kWatch:
      return "badge watch";
    case Tone::kBad:
      return "badge bad";
    case Tone::kPlain:
      break;
  }
  return "badge plain";
}
}  // namespace

Html badge(std::string_view words, Tone tone) {
  Html out;
  out << "<span";
  out.attribute("class", tone_class(tone).text) << ">";
  out.text(words) << "</span>";
  return out;
}

Html verdict_badge(std::string_view verdict) {
  if (verdict == "pass" || verdict == "match" || verdict == "ok")
    return badge(verdict, Tone::kGood);
  if (verdict == "fail" || verdict == "mismatch") return badge(verdict, Tone::kBad);
  if (verdict == "not-measured") return badge("not measured", Tone::kWatch);
  return badge(verdict.empty() ? "none" : verdict, Tone::kPlain);
}

Html path_words(std::string_view path) {
  Html out;
  if (path.empty()) return out;
  out << "<span>";
  for (size_t from = 0; from < path.size();) {
    const size_t next = std::min(path.find_first_of("/_", from + 1), path.size());
    if (from > 0) out << "<wbr>";
    out.text(path.substr(from, next - from));
    from = next;
  }
  out << "</span>";
  return out;
}

Html empty_state(std::string_view words) {
  Html out;
  out << "<p class=\"empty-state\">";
  out.text(words) << "</p>";
  return out;
}

Html note(std::string_view words) {
  Html out;
  out << "<p class=\"note\">";
  out.text(words) << "</p>";
  return out;
}

Html text_block(std::string_view text, size_t limit, std::string_view artifact) {
  Html out;
  const std::string_view shown = cut_bytes(text, limit);
  out << "<pre dir=\"auto\">";
  out.text(shown) << "</pre>";
  if (shown.size() < text.size())
    out << note("Cut here: " + count(static_cast<int64_t>(shown.size())) + " of " +
                count(static_cast<int64_t>(text.size())) +
                " bytes are shown; the whole text is in " + std::string(artifact) + ".");
  return out;
}

}  // namespace anvil::report
