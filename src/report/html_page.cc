#include <algorithm>
#include <map>
#include <tuple>

#include "report/html_parts.h"
#include "report/json_read.h"
#include "report/text.h"

namespace anvil::report {

namespace {

constexpr size_t kMostFailures = 400;

Html step_table(const Facts& facts) {
  Table table("narrow", "Steps of the run");
  table.head({{"Step"}, {"Began at", true}, {"Took", true}, {"Ended"}});
  for (const Step& step : facts.steps) {
    const double took = static_cast<double>(step.end - step.begin) / 1e9;
    const bool open = step.ending == Step::Ending::kOpen,
               failed = step.ending == Step::Ending::kFailed;
    table.row(failed ? Markup("bad") : open ? Markup("watch") : Markup("")).cell(step.name, "key");
    table.number(seconds(facts.seconds(step.begin)), facts.seconds(step.begin));
    table.number(open ? "" : seconds(took), took);
    Html ending;
    ending << (failed ? badge("failed", Tone::kBad)
               : open ? badge("never", Tone::kWatch)
                      : badge("yes", Tone::kGood));
    if (!step.error.empty()) {
      ending << "<small>";
      ending.text(ellipsis(one_line(step.error), 300)) << "</small>";
    }
    table.html(ending, "prose");
  }
  return table.finish();
}

Html steps_section(const Facts& facts) {
  return facts.steps.empty() ? empty_state("The journal holds no step.") : step_table(facts);
}

// Whether a step is part of the run. One that only measures has no checks; a run that was cut off
// may not have come to them.
bool belongs(const Facts& facts, std::string_view step) {
  return !facts.decided || facts.step("lanes") == nullptr || facts.step(step) != nullptr;
}

}  // namespace

Html stop_section(const Facts& facts) {
  const Json& stop = at(facts.results, {"stop"});
  if (!stop.is_object() || at(stop, {"clean"}).is_null())
    return empty_state(!facts.launch.is_object() ? "Nothing was started, so nothing was stopped."
                       : text_at(facts.launch, {"runner"}) == "external"
                           ? "The engine was started by others and left running."
                           : "No proof of a stop was recorded.");
  const bool clean = flag_at(stop, {"clean"}).value_or(false);
  Html out;
  out << "<dl class=\"facts\"><div><dt>Clean</dt><dd>"
      << badge(clean ? "yes" : "no", clean ? Tone::kGood : Tone::kBad) << "</dd></div>";
  if (const auto free = flag_at(stop, {"port_free"}))
    out << "<div><dt>Port free</dt><dd>"
        << badge(*free ? "yes" : "no", *free ? Tone::kGood : Tone::kBad) << "</dd></div>";
  const auto add = [&](Markup label, const std::string& value) {
    if (value.empty()) return;
    out << "<div><dt>" << label << "</dt><dd>";
    out.text(value) << "</dd></div>";
  };
  if (const auto left = integer_at(stop, {"left"})) add("Processes left", std::to_string(*left));
  if (const auto took = number_at(stop, {"seconds"})) add("Took", seconds(*took));
  add("Ended by", text_at(facts.launch, {"stop", "how"}));
  out << "</dl>";
  return out;
}

Html failures_section(const Facts& facts) {
  Html out;
  if (const std::string step = failed_step_words(facts); !step.empty()) {
    out << "<div class=\"callout bad\"><p><b>A step failed.</b> ";
    out.text(step) << "</p></div>";
  }
  std::vector<const Request*> failed;
  for (const Request& request : facts.requests)
    if (!request.ok()) failed.push_back(&request);
  const auto provoked = provoked_failures(facts);
  if (failed.empty()) {
    out << empty_state(facts.requests.empty()
                           ? "No request was sent."
                           : "All " + count(static_cast<int64_t>(facts.requests.size())) +
                                 " requests finished.");
    return out;
  }
  out << "<p>";
  out.text(count(static_cast<int64_t>(failed.size())) + " of " +
           count(static_cast<int64_t>(facts.requests.size())) +
           " requests failed and stay in every denominator" +
           (provoked.empty() ? "."
                             : "; " + std::to_string(provoked.size()) +
                                   " of them because a check, which passed, had provoked it."))
      << "</p>";
  Table table("sortable", "Failed requests");
  table.head({{"#", true},
              {"Purpose"},
              {"Lane"},
              {"Item"},
              {"Outcome"},
              {"Status", true},
              {"Sent at", true},
              {"Error"}});
  for (size_t i = 0; i < failed.size() && i < kMostFailures; ++i) {
    const Request& request = *failed[i];
    table.row()
        .number(std::to_string(request.seq), static_cast<double>(request.seq))
        .cell(evidence::name(request.purpose));
    table.cell(ellipsis(request.lane, 40))
        .cell(ellipsis(request.item, 40))
        .html(provoked.contains(request.seq)
                  ? badge(std::string(evidence::name(request.outcome)) + ", provoked", Tone::kPlain)
                  : badge(evidence::name(request.outcome), Tone::kBad));
    table.number(request.status == 0 ? "none" : std::to_string(request.status));
    table.number(seconds(facts.seconds(request.start)), facts.seconds(request.start));
    table.cell((request.error_kind.empty() ? "" : request.error_kind + ": ") +
                   ellipsis(one_line(request.error_detail), 300),
               "prose");
  }
  out << table.finish();
  if (failed.size() <= kMostFailures) return out;

  struct Group {
    size_t n = 0;
    int64_t first = 0, last = 0;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Group> groups;
  for (size_t i = kMostFailures; i < failed.size(); ++i) {
    Group& group = groups[{failed[i]->lane, std::string(evidence::name(failed[i]->outcome)),
                           failed[i]->error_kind}];
    if (group.n++ == 0) group.first = failed[i]->seq;
    group.last = failed[i]->seq;
  }
  Table rest("narrow titled", "Further failed requests, grouped");
  rest.head(
      {{"Lane"}, {"Outcome"}, {"Error"}, {"Requests", true}, {"First #", true}, {"Last #", true}});
  for (const auto& [key, group] : groups) {
    rest.row().cell(std::get<0>(key)).cell(std::get<1>(key)).cell(std::get<2>(key));
    rest.number(count(static_cast<int64_t>(group.n)))
        .number(std::to_string(group.first))
        .number(std::to_string(group.last));
  }
  out << note("The rows above are the first " + std::to_string(kMostFailures) +
              "; the rest, grouped:")
      << rest.finish();
  return out;
}

Html log_section(const Facts& facts) {
  if (facts.log_tail.empty())
    return empty_state("The engine wrote nothing, or its output was not captured.");
  Html out;
  out << "<p class=\"quiet\">";
  out.text(facts.log_lines > static_cast<int64_t>(facts.log_tail.size())
               ? "The last " + std::to_string(facts.log_tail.size()) + " of " +
                     count(facts.log_lines) + " lines; the whole log is engine.log."
               : "All " + count(facts.log_lines) + " lines.")
      << "</p>"
      << (at(facts.launch, {"failure"}).is_object() ? Markup("<details open>")
                                                    : Markup("<details>"))
      << "<summary>Show the log</summary><pre class=\"log\" dir=\"auto\">";
  for (const auto& line : facts.log_tail) {
    out.text(ellipsis(one_line(line), 400)) << "\n";
  }
  out << "</pre></details>";
  return out;
}

Html verify_section(const Facts& facts) {
  Html out;
  out << "<p>Recompute every hash, every derived number, every gate and this page itself from the "
         "raw records:</p><pre><code>";
  out.text(verify_command(facts))
      << "</code></pre><p>It exits 0 if all agree, and otherwise names the artifact and the value "
         "that does not. This page is a pure function of the run: the same run gives the same "
         "bytes.</p>";
  return out;
}

std::string html_page(const Facts& facts) {
  std::vector<Section> sections;
  sections.push_back({"tested", "What was tested", subject_section(facts)});
  sections.push_back({"chain", "Chain of hashes", chain_section(facts)});
  sections.push_back({"gates", "Gates", gates_section(facts)});
  sections.push_back({"identity", "Identity", identity_section(facts)});
  if (belongs(facts, "fingerprint"))
    sections.push_back({"fingerprint", "Prompt fingerprint", fingerprint_section(facts)});
  if (belongs(facts, "checks")) sections.push_back({"checks", "Checks", checks_section(facts)});
  sections.push_back({"lanes", "Lanes", lanes_section(facts)});
  sections.push_back({"timeline", "Request timeline", timeline_section(facts)});
  if (belongs(facts, "ladder"))
    sections.push_back({"ladder", "Context ladder", ladder_section(facts)});
  sections.push_back({"hardware", "Hardware over time", hardware_section(facts)});
  sections.push_back({"startup", "Start-up", startup_section(facts)});
  sections.push_back({"stop", "Stop", stop_section(facts)});
  sections.push_back({"steps", "Steps of the run", steps_section(facts)});
  sections.push_back({"environment", "Environment", environment_section(facts)});
  sections.push_back({"failures", "Failures", failures_section(facts)});
  sections.push_back({"log", "Engine log", log_section(facts)});
  sections.push_back({"definitions", "Definitions", definitions_section()});
  sections.push_back({"names", "Names in other tools", names_section()});
  sections.push_back({"verify", "How to verify", verify_section(facts)});

  const Verdict verdict = verdict_of(facts);
  const std::string name = text_at(facts.manifest, {"recipe", "name"});
  return document((name.empty() ? "Anvil run" : name) + ": " + verdict.word, "qualification report",
                  name.empty() ? "Run without a recipe name" : name, facts.run_id,
                  verdict_strip(facts), sections);
}

}  // namespace anvil::report
