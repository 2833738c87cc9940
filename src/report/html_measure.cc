#include <algorithm>

#include "report/charts.h"
#include "report/html_parts.h"
#include "report/json_read.h"
#include "report/load_view.h"
#include "report/text.h"

namespace anvil::report {

namespace {

constexpr size_t kMostRows = 300;

std::string tokens_shape(const Json& lane) {
  const auto in = integer_at(lane, {"prompt_tokens_target"}),
             out = integer_at(lane, {"output_tokens_target"});
  return (in ? count(*in) : "any") + " \xE2\x86\x92 " + (out ? count(*out) : "any");
}

std::string counts_words(const Json& map) {
  std::string out;
  if (map.is_object())
    for (const auto& [name, n] : map.items())
      out += (out.empty() ? "" : ", ") + name + " " + plain(n);
  return out;
}

Table& value(Table& table, const Json& from, const char* key,
             std::string (*format)(double) = figure) {
  const auto number = number_at(from, {key});
  return number ? table.number(format(*number), *number) : table.number("none");
}

Html lane_summary(const Json& lanes) {
  Table table("sortable", "Lanes");
  table.head({{"Lane"},
              {"State"},
              {"Load", true},
              {"Tokens in \xE2\x86\x92 out", true},
              {"Requests ok", true},
              {"TTFO p50", true},
              {"TTFO p90", true},
              {"E2E p50", true},
              {"TPOT p50", true},
              {"Decode p50, tok/s", true},
              {"Prefill p50, tok/s", true},
              {"Aggregate, tok/s", true}});
  for (const Json& lane : lanes) {
    const auto ok = integer_at(lane, {"requests", "ok"}).value_or(0),
               total = integer_at(lane, {"requests", "total"}).value_or(0);
    const auto refused = integer_at(lane, {"requests", "refused"}).value_or(0);
    table.row(ok < total ? Markup("watch") : Markup("")).cell(text_at(lane, {"id"}), "key");
    table.cell(state_words(text_at(lane, {"cache_state"})), "tight")
        .number(load_words(lane), number_at(lane, {"concurrency"}))
        .number(tokens_shape(lane));
    table.number(std::to_string(ok) + " of " + std::to_string(total) +
                     (refused > 0 ? ", " + std::to_string(refused) + " refused" : ""),
                 static_cast<double>(ok));
    table.figure(figure_of(at(lane, {"ttfo_ms"}), "p50"), milliseconds)
        .figure(figure_of(at(lane, {"ttfo_ms"}), "p90"), milliseconds);
    table.figure(figure_of(at(lane, {"e2e_ms"}), "p50"), milliseconds)
        .figure(figure_of(at(lane, {"tpot_ms"}), "p50"), milliseconds);
    table.figure(figure_of(at(lane, {"decode_tok_s"}), "p50"))
        .figure(figure_of(at(lane, {"effective_prefill_tok_s"}), "p50"));
    value(table, lane, "aggregate_output_tok_s");
  }
  return table.finish();
}

struct Metric {
  const char* key;
  Markup name;
  bool latency;
};
constexpr Metric kMetrics[] = {
    {"ttfe_ms", "TTFE", true},
    {"ttfo_ms", "TTFO", true},
    {"ttfv_ms", "TTFV", true},
    {"e2e_ms", "E2E", true},
    {"done_ms", "end of stream", true},
    {"generation_ms", "generation", true},
    {"tpot_ms", "TPOT", true},
    {"chunk_gap_ms", "chunk gap", true},
    {"service_ms", "service latency", true},
    {"schedule_ms", "schedule latency", true},
    {"send_delay_ms", "send delay", true},
    {"decode_tok_s", "decode, tok/s", false},
    {"effective_prefill_tok_s", "effective prefill, tok/s", false},
    {"computed_prefill_tok_s", "computed prefill, tok/s", false},
};

Html lane_table(const Json& lane) {
  Table table("dense", "Distributions");
  table.head({{"Metric"},
              {"n", true},
              {"min", true},
              {"p50", true},
              {"p90", true},
              {"p95", true},
              {"p99", true},
              {"max", true},
              {"mean", true}});
  for (const Metric& metric : kMetrics) {
    const Json& dist = at(lane, {metric.key});
    if (!dist.is_object()) continue;
    Html name;
    name << metric.name;
    table.row().html(name, "key").number(plain(at(dist, {"n"})));
    const auto format = metric.latency ? milliseconds : figure;
    for (const char* which : {"min", "p50", "p90", "p95", "p99", "max", "mean"})
      table.figure(figure_of(dist, which), format);
  }
  return table.finish();
}

// Drawings of one lane side by side.
Html lane_charts(const Facts& facts, const Json& lane) {
  Html out;
  int charts = 0;
  const auto add = [&](std::string_view caption, const Html& chart) {
    if (chart.empty()) return;
    ++charts;
    out << "<figure><figcaption>";
    out.text(caption) << "</figcaption>" << chart << "</figure>";
  };
  add("Share of requests through", latency_chart(facts, lane));
  add("Latency by percentile", nines_chart(lane));
  add("Tokens in each event", tokens_per_chunk_chart(lane));
  std::string caption = "Draft tokens accepted, by position";
  if (const auto length = number_at(lane, {"counters", "mean_acceptance_length"}))
    caption += "; mean length " + fixed(*length, 2);
  add(caption, acceptance_chart(lane));
  if (out.empty()) return empty_state("No request of this lane finished.");
  Html box;
  box << (charts == 3 ? Markup("<div class=\"panels three\">")
                      : Markup("<div class=\"panels two\">"))
      << out << "</div>";
  return box;
}

Html lane_facts(const Json& lane) {
  Html out;
  out << "<dl class=\"mini\">";
  const auto add = [&](Markup label, const std::string& value) {
    if (value.empty()) return;
    out << "<div><dt>" << label << "</dt><dd>";
    out.text(value) << "</dd></div>";
  };
  const auto window = number_at(lane, {"window_s"}), rate = number_at(lane, {"success_rate"});
  const auto cached = integer_at(lane, {"tokens", "cached"}),
             missed = integer_at(lane, {"fixed_output_missed"});
  add("Window", window ? seconds(*window) : "");
  add("Success", rate ? fixed(*rate * 100, 1) + " %" : "");
  if (!at(lane, {"client"}).is_object()) {  // a run from before there was a strip
    add("Token counts from", counts_words(at(lane, {"token_source"})));
    add("TPOT assumes", text_at(lane, {"tpot_assumption"}));
  }
  if (const Json& carried = at(lane, {"tokens_per_chunk"});
      carried.is_object() && carried.size() == 1)
    add("Events by tokens carried", counts_words(carried));
  add("Cached prompt tokens", cached ? count(*cached) : "");
  add("Cache state proven by", text_at(lane, {"cache_proof"}));
  add("Refused rows", counts_words(at(lane, {"refusals"})));
  add("Missed the fixed length", missed && *missed > 0 ? std::to_string(*missed) + " answers" : "");
  const auto reached = number_at(lane, {"load", "rate_sent"});
  add("Rate sent", reached ? figure(*reached) + " requests/s" : "");
  add("Connections", text_at(lane, {"load", "connections"}));
  const auto drafted = number_at(lane, {"speculation", "acceptance"});
  add("Draft tokens accepted, by the answers", drafted ? fixed(*drafted * 100, 1) + " %" : "");
  const Json& counters = at(lane, {"counters"});
  if (flag_at(counters, {"reset"}).value_or(false))
    add("Engine counters", "fell: the engine restarted, no differences");
  const auto counter = [&](Markup label, const char* key) {
    const auto value = number_at(counters, {key});
    add(label, value ? count(static_cast<int64_t>(*value)) : "");
  };
  counter("Prompt tokens, by the engine", "prompt_tokens");
  counter("Output tokens, by the engine", "output_tokens");
  counter("Preemptions, by the engine", "preemptions");
  const auto acceptance = number_at(counters, {"acceptance"});
  add("Draft tokens accepted, by the engine", acceptance ? fixed(*acceptance * 100, 1) + " %" : "");
  out << "</dl>";
  return out;
}

void lane_card(Html& out, const Facts& facts, const Json& lane) {
  out << "<article class=\"lane\"><h3>";
  out.text(text_at(lane, {"id"})) << "</h3><p class=\"quiet\">";
  std::string words = state_words(text_at(lane, {"cache_state"})) + ", " + tokens_shape(lane) +
                      " tokens, " + load_words(lane);
  if (flag_at(lane, {"fixed_output"}).value_or(false)) words += ", fixed output length";
  out.text(words) << "</p>" << validity_strip(facts, lane) << lane_charts(facts, lane)
                  << lane_facts(lane) << "<details><summary>All distributions</summary>"
                  << lane_table(lane) << "</details></article>";
}

Html requests_table(const Facts& facts) {
  Table table("sortable dense", "Requests");
  table.head({{"#", true},
              {"Purpose"},
              {"Lane"},
              {"Item"},
              {"Outcome"},
              {"Sent at", true},
              {"TTFO", true},
              {"E2E", true},
              {"In", true},
              {"Cached", true},
              {"Out", true}});
  const auto time = [&](const std::optional<double>& ms) {
    ms ? table.number(milliseconds(*ms), *ms) : table.number("");
  };
  const auto tokens = [&](const std::optional<int64_t>& n) {
    n ? table.number(count(*n), static_cast<double>(*n)) : table.number("");
  };
  size_t shown = 0;
  for (const Request& request : facts.requests) {
    if (shown++ == kMostRows) break;
    table.row(request.ok() ? Markup("") : Markup("bad"))
        .number(std::to_string(request.seq), static_cast<double>(request.seq));
    table.cell(evidence::name(request.purpose))
        .cell(ellipsis(request.lane, 40))
        .cell(ellipsis(request.item, 40));
    table.cell(evidence::name(request.outcome))
        .number(seconds(facts.seconds(request.start)), facts.seconds(request.start));
    time(request.ttfo_ms);
    time(request.e2e_ms);
    tokens(request.prompt_tokens);
    tokens(request.cached_tokens);
    tokens(request.completion_tokens);
  }
  Html out;
  out << "<details><summary>Requests as a table</summary>" << table.finish();
  if (facts.requests.size() > kMostRows)
    out << note("The first " + std::to_string(kMostRows) + " of " +
                count(static_cast<int64_t>(facts.requests.size())) +
                " are listed; all are in requests.jsonl.");
  out << "</details>";
  return out;
}

}  // namespace

Html lanes_section(const Facts& facts) {
  const Json& lanes = list_at(facts.results, {"lanes"});
  if (lanes.empty()) return empty_state("No lane was measured.");
  Html out;
  out << lane_summary(lanes)
      << note(
             "A percentile below its sample floor is refused, not guessed; a median of few samples "
             "is marked; one that our own error may have made is struck out.");
  if (const Html charts = throughput_charts(facts); !charts.empty())
    out << "<h3>Throughput and latency</h3>" << charts;
  out << goodput_table(lanes);
  for (const Json& lane : lanes) lane_card(out, facts, lane);
  out << note(
      "Distributions show which share of all requests of a lane was through after which "
      "time. The axis of percentiles is one of nines; behind the highest percentile that "
      "the samples can certify, the line is broken.");
  return out;
}

Html timeline_section(const Facts& facts) {
  const Html chart = timeline_chart(facts);
  if (chart.empty()) return empty_state("No request was sent.");
  Html out;
  out << chart << requests_table(facts);
  return out;
}

Html ladder_section(const Facts& facts) {
  const Json& rungs = list_at(facts.results, {"ladder", "rungs"});
  if (rungs.empty()) return empty_state("The context ladder was not climbed.");
  Html out;
  out << "<p>";
  const auto complete = integer_at(facts.results, {"ladder", "largest_complete"}),
             retrieved = integer_at(facts.results, {"ladder", "largest_retrieved"});
  out.text(complete
               ? "The largest prompt that was served whole has " + count(*complete) + " tokens. "
               : "No rung was served whole. ");
  out.text(retrieved
               ? "Facts hidden in it were all returned up to " + count(*retrieved) + " tokens."
               : "At no rung were all hidden facts returned.");
  out << "</p>" << ladder_charts(facts);
  Table table("sortable", "Context ladder");
  table.head({{"Target", true},
              {"State"},
              {"Verdict"},
              {"Prompt tokens", true},
              {"Off by", true},
              {"Cached", true},
              {"TTFO", true},
              {"E2E", true},
              {"Effective prefill, tok/s", true},
              {"Computed prefill, tok/s", true},
              {"Retrieval", true},
              {"Healthy after"}});
  for (const Json& rung : rungs) {
    const bool accepted = flag_at(rung, {"accepted"}).value_or(false);
    const std::string refused = text_at(rung, {"refused"});
    table.row(accepted ? Markup("") : Markup("watch"));
    const auto target = integer_at(rung, {"target"});
    table.number(target ? count(*target) : "none", number_at(rung, {"target"}))
        .cell(state_words(text_at(rung, {"state"})), "tight");
    Html verdict;
    verdict << badge(accepted ? "accepted" : "refused", accepted ? Tone::kGood : Tone::kWatch);
    if (!refused.empty()) {
      verdict << "<small>";
      verdict.text(ellipsis(one_line(refused), 160)) << "</small>";
    }
    table.html(verdict, "prose");
    const auto whole = [&](const char* key) {
      const auto n = integer_at(rung, {key});
      n ? table.number(count(*n), static_cast<double>(*n)) : table.number("none");
    };
    whole("prompt_tokens");
    whole("deviation_tokens");
    whole("cached_tokens");
    value(table, rung, "ttfo_ms", milliseconds);
    value(table, rung, "e2e_ms", milliseconds);
    value(table, rung, "effective_prefill_tok_s");
    value(table, rung, "computed_prefill_tok_s");
    value(table, rung, "retrieval");
    const auto healthy = flag_at(rung, {"healthy"});
    table.html(!healthy   ? badge("not probed", Tone::kPlain)
               : *healthy ? badge("yes", Tone::kGood)
                          : badge("no", Tone::kBad));
  }
  out << table.finish();
  return out;
}

Html hardware_section(const Facts& facts) {
  const Html charts = hardware_charts(facts);
  if (charts.empty())
    return empty_state(facts.samples.empty() ? "Nothing was sampled." : "Too few samples to draw.");
  Html out;
  out << charts;
  const Json& gpus = list_at(facts.results, {"hardware", "gpus"});
  if (!gpus.empty()) {
    Table table("narrow titled", "GPUs over the run");
    table.head({{"GPU"},
                {"Least memory free, GiB", true},
                {"Peak power, W", true},
                {"Highest temperature, \xC2\xB0"
                 "C",
                 true}});
    for (const Json& gpu : gpus) {
      const std::string role = text_at(gpu, {"role"});
      table.row().cell(role.empty() ? "GPU " + plain(at(gpu, {"index"})) : role, "key");
      value(table, gpu, "min_free_gib");
      value(table, gpu, "peak_power_w");
      value(table, gpu, "max_temp_c");
    }
    out << table.finish();
  }
  const auto available = number_at(facts.results, {"hardware", "host", "min_available_gib"});
  const auto cpu = number_at(facts.results, {"hardware", "engine", "cpu_s"});
  std::string words = count(static_cast<int64_t>(facts.samples.size())) + " samples";
  if (available) words += "; least host memory free " + figure(*available) + " GiB";
  if (cpu) words += "; the engine used " + seconds(*cpu) + " of processor time";
  out << note(words + ". What its processes used over time stands below the request timeline.");
  return out;
}

Html startup_section(const Facts& facts) {
  const Json& phases = list_at(facts.results, {"startup", "phases"});
  const auto ready = number_at(facts.results, {"startup", "ready_s"});
  Html out;
  if (ready) {
    out << "<p>";
    out.text("Ready after " + seconds(*ready) + ".") << "</p>";
  } else {
    out << empty_state("The engine never became ready.");
  }
  out << startup_chart(facts);
  if (!phases.empty()) {
    Table table("narrow", "Start-up phases");
    table.head({{"Phase"}, {"Duration", true}});
    for (const Json& phase : phases) {
      table.row().cell(text_at(phase, {"name"}), "key");
      value(table, phase, "seconds", seconds);
    }
    out << table.finish();
  }
  return out;
}

}  // namespace anvil::report
