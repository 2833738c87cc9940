#include "report/html_parts.h"

#include "report/text.h"

namespace anvil::report {

Table::Table(Markup classes, Markup caption) {
  out_ << "<div class=\"scroll\" role=\"region\" tabindex=\"0\"";
  out_.attribute("aria-label", caption.text) << "><table";
  out_.attribute("class", classes.text) << "><caption>" << caption << "</caption>";
}

Table& Table::head(std::initializer_list<Column> columns) {
  out_ << "<thead><tr>";
  for (const Column& column : columns)
    out_ << (column.number ? Markup("<th scope=\"col\" class=\"n\">")
                           : Markup("<th scope=\"col\">"))
         << column.title << "</th>";
  out_ << "</tr></thead><tbody>";
  return *this;
}

Table& Table::row(Markup classes) {
  if (rows_++ > 0) out_ << "</tr>";
  out_ << "<tr";
  if (!classes.text.empty()) out_.attribute("class", classes.text);
  out_ << ">";
  return *this;
}

Table& Table::cell(std::string_view words, Markup classes) {
  Html content;
  content.text(words);
  return html(content, classes);
}

Table& Table::number(std::string_view words, std::optional<double> sort) {
  out_ << "<td class=\"n\"";
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
      out_ << "<td class=\"n quiet\">none</td>";
      return *this;
    case Figure::Kind::kRefused:
      out_ << "<td class=\"n quiet refused\">";
      out_.text(words_of(figure)) << "</td>";
      return *this;
    case Figure::Kind::kBelowFloor:
      break;
  }
  out_ << "<td class=\"n marked\"";
  out_.attribute("data-v", fixed(figure.value, 6)) << ">";
  Figure bare = figure;
  bare.kind = Figure::Kind::kValue;
  out_.text(words_of(bare, format)) << "<small>";
  out_.text("median, n=" + std::to_string(figure.n) + " < " + std::to_string(figure.floor))
      << "</small></td>";
  return *this;
}

Table& Table::html(const Html& content, Markup classes) {
  out_ << "<td";
  if (!classes.text.empty()) out_.attribute("class", classes.text);
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
