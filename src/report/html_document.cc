#include "report/html_parts.h"
#include "report/page_assets.h"
#include "report/text.h"
#include "report/tool_names.h"

namespace anvil::report {

namespace {

void navigation(Html& out, const std::vector<Section>& sections) {
  out << "<nav aria-label=\"Contents\"><ol>";
  for (const Section& section : sections) {
    out << "<li><a";
    Html target;
    target << "#" << section.id;
    out.attribute("href", target.str()) << ">" << section.title << "</a></li>";
  }
  out << "</ol></nav>";
}

}  // namespace

Html definitions_section() {
  Html out;
  out << "<dl class=\"definitions\">";
  for (const Definition& each : definitions()) {
    out << "<div><dt>";
    out.text(each.term) << "</dt><dd>";
    out.text(each.meaning) << "</dd></div>";
  }
  out << "</dl>" << note("Every time is on CLOCK_MONOTONIC of the measuring host.");
  return out;
}

Html names_section() {
  Html out;
  out << "<p>The same stream gives other numbers in other tools, mostly because a name means "
         "something else there.</p>";
  Table table("stack", "Metric names in other tools");
  table.head({{"Anvil"}, {"vLLM bench"}, {"GuideLLM"}, {"AIPerf"}, {"Difference"}});
  const auto name = [&](std::string_view words) {
    Html cell;
    if (!words.empty()) {
      cell << "<code>" << path_words(words) << "</code>";
    }
    table.html(cell, "where");
  };
  for (const ToolNames& each : tool_names()) {
    table.row().cell(each.ours, "key");
    name(each.vllm_bench);
    name(each.guidellm);
    name(each.aiperf);
    table.cell(each.difference, "prose");
  }
  out << table.finish();
  return out;
}

std::string document(std::string_view title, Markup kind, std::string_view heading,
                     std::string_view subheading, const Html& below,
                     const std::vector<Section>& sections) {
  Html out;
  out << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta "
         "name=\"color-scheme\" content=\"light dark\">"
         "<meta http-equiv=\"Content-Security-Policy\"";
  // Only our own script may run and nothing may be fetched, even if a foreign text were to escape
  // its quotes.
  out.attribute("content",
                "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
                "form-action 'none'; script-src 'sha256-" +
                    script_hash() + "'");
  out << "><link rel=\"icon\" href=\"data:,\"><title>";
  out.text(title) << "</title><style>";
  out.asset(style_sheet())
      << "</style></head><body><a class=\"skip\" href=\"#main\">Skip to the report</a><header><div "
         "class=\"brand\">"
         "<span class=\"mark\" aria-hidden=\"true\"></span>Anvil <span class=\"quiet\">"
      << kind
      << "</span></div>"
         "<button id=\"theme\" type=\"button\" hidden>Dark</button></header><div class=\"layout\">";
  navigation(out, sections);
  out << "<main id=\"main\"><h1>";
  out.text(heading) << "</h1><p class=\"run quiet\">";
  out.text(subheading) << "</p>" << below;
  for (const Section& section : sections) {
    out << "<section";
    out.attribute("id", section.id.text)
        << "><h2>" << section.title << "</h2>" << section.body << "</section>";
  }
  out << "</main></div><div id=\"tip\" role=\"status\" hidden></div><script>";
  out.asset(script()) << "</script></body></html>\n";
  return out.str();
}

}  // namespace anvil::report
