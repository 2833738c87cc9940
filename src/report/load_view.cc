#include "report/load_view.h"

#include <utility>

#include "base/strings.h"
#include "report/json_read.h"
#include "report/text.h"

namespace anvil::report {

namespace {

constexpr std::pair<std::string_view, std::string_view> kMetricWords[] = {
    {"ttfe_ms", "TTFE"},
    {"ttfo_ms", "TTFO"},
    {"ttfv_ms", "TTFV"},
    {"e2e_ms", "E2E"},
    {"done_ms", "end of stream"},
    {"generation_ms", "generation"},
    {"service_ms", "service latency"},
    {"schedule_ms", "schedule latency"},
    {"tpot_ms", "TPOT"},
    {"chunk_gap_ms", "chunk gap"},
    {"send_delay_ms", "send delay"},
    {"decode_tok_s", "decode tok/s"},
    {"effective_prefill_tok_s", "effective prefill tok/s"},
    {"computed_prefill_tok_s", "computed prefill tok/s"},
    {"aggregate_output_tok_s", "aggregate tok/s"},
    {"output_tok_s", "steady tok/s"},
    {"success_rate", "success rate"},
    {"goodput.req_s", "goodput, requests/s"},
    {"goodput.share", "goodput, share"},
    {"speculation.acceptance", "acceptance, by answers"},
    {"counters.acceptance", "acceptance, by counters"},
    {"counters.mean_acceptance_length", "mean acceptance length"},
    {"tokens.completion", "output tokens"},
};

std::vector<std::string> words_in(const Json& list) {
  std::vector<std::string> out;
  for (const Json& each : list) out.push_back(plain(each));
  return out;
}

std::string micros(const Json& from, const char* which) {
  const auto value = number_at(from, {which});
  return value ? milliseconds(*value / 1e3) : "none";
}

std::string share(double value) {
  return fixed(value * 100, value < 0.0995 ? 1 : 0) + " %";
}

// The lane's entry in load.json.
const Json& recorded(const Facts& facts, const std::string& id) {
  static const Json kNone;
  for (const Json& entry : list_at(facts.load, {"lanes"}))
    if (text_at(entry, {"id"}) == id) return at(entry, {"client"});
  return kNone;
}

Mark error_mark(const Json& calibration) {
  Mark mark{"Client error, p99", "not calibrated", "", Tone::kWatch};
  if (!calibration.is_object()) return mark;
  if (!flag_at(calibration, {"valid"}).value_or(false)) {
    mark.value = "unknown";
    mark.note = one_line(text_at(calibration, {"because"}));
    return mark;
  }
  const auto p99 = number_at(calibration, {"first_output_us", "p99"});
  mark.tone = p99 && *p99 > 1000 ? Tone::kWatch : Tone::kGood;
  mark.value = micros(at(calibration, {"first_output_us"}), "p99") + " of TTFO";
  mark.note = "p50 " + micros(at(calibration, {"first_output_us"}), "p50") + ", p90 " +
              micros(at(calibration, {"first_output_us"}), "p90") + "; gaps p99 " +
              micros(at(calibration, {"gap_us"}), "p99") + "; stamps p99.9 " +
              micros(at(calibration, {"stamp_us"}), "p999");
  if (const auto rate = number_at(calibration, {"events_per_s"}))
    mark.note += "; at " + figure(*rate) + " events/s";
  return mark;
}

Mark lateness_mark(const Json& client, const Json& lane) {
  const bool open = text_at(lane, {"load", "kind"}) != "closed";
  Mark mark{"Sent late, p99", "none", "", Tone::kPlain};
  if (const auto p99 = number_at(client, {"lateness_us", "p99"}); open && p99) {
    mark.value = micros(at(client, {"lateness_us"}), "p99");
    mark.note = "worst " + micros(at(client, {"lateness_us"}), "max");
    mark.tone = *p99 > 1000 ? Tone::kWatch : Tone::kGood;
    return mark;
  }
  const Json& delay = at(lane, {"send_delay_ms"});
  const auto worst = number_at(delay, {"max"});
  if (!worst) return mark;
  const Figure p99 = figure_of(delay, "p99");
  if (p99.kind == Figure::Kind::kValue) {
    mark.value = milliseconds(p99.value);
    mark.note = "worst " + milliseconds(*worst);
  } else {
    mark.label = "Sent late, worst";
    mark.value = milliseconds(*worst);
  }
  mark.tone = *worst > 50 ? Tone::kWatch : Tone::kGood;
  return mark;
}

Mark token_mark(const Json& lane) {
  Mark mark{"Token counts from", "none", "", Tone::kWatch};
  const Json& sources = at(lane, {"token_source"});
  if (!sources.is_object() || sources.empty()) return mark;
  mark.value.clear();
  bool only_usage = true;
  for (const auto& [name, n] : sources.items()) {
    mark.value += (mark.value.empty() ? "" : ", ") + one_line(name) + " " + plain(n);
    only_usage = only_usage && name == "usage";
  }
  mark.tone = only_usage ? Tone::kGood : sources.contains("none") ? Tone::kWatch : Tone::kPlain;
  if (const std::string assumed = text_at(lane, {"tpot_assumption"}); !assumed.empty())
    mark.note = "TPOT: " + assumed;
  return mark;
}

Mark stamp_mark(const Json& judged, const Json& client) {
  const std::string source = text_at(judged, {"stamp_source"});
  Mark mark{"Stamps", source.empty() ? "not recorded" : source, "", Tone::kPlain};
  if (source == "kernel") mark.tone = Tone::kGood;
  if (source == "mixed" || source == "user") mark.tone = Tone::kWatch;
  const auto kernel = integer_at(client, {"stamp_source", "kernel"}),
             user = integer_at(client, {"stamp_source", "user"});
  if (kernel && user) mark.note = count(*kernel) + " by the kernel, " + count(*user) + " by us";
  return mark;
}

Mark steady_mark(const Json& lane) {
  Mark mark{"Steady window", "none", "", Tone::kWatch};
  const Json& steady = at(lane, {"steady"});
  const auto length = number_at(steady, {"seconds"});
  if (!length) {
    mark.note = "the lane never ran as planned";
    return mark;
  }
  mark.tone = Tone::kGood;
  mark.value = seconds(*length);
  const auto rate = number_at(steady, {"output_tok_s"});
  const auto finished = integer_at(steady, {"finished"});
  mark.note = (rate ? figure(*rate) + " tok/s" : "tokens unknown") +
              (finished ? ", " + count(*finished) + " requests" : "");
  if (const std::string how = text_at(steady, {"crediting"}); !how.empty())
    mark.note += "; credited by " + how;
  return mark;
}

Mark path_mark(const Json& judged) {
  const std::string path = text_at(judged, {"path"});
  return {"Path", path.empty() ? "too few events" : path,
          path == "buffered" ? "times are those of a buffer on the way" : "",
          path == "buffered"    ? Tone::kWatch
          : path == "streaming" ? Tone::kGood
                                : Tone::kPlain};
}

Mark busy_mark(const Json& judged, const Json& lane) {
  const auto busy = number_at(judged, {"busy_share"});
  Mark mark{"Our client was busy", busy ? share(*busy) : "not recorded", "", Tone::kPlain};
  if (busy) mark.tone = *busy > 0.9 ? Tone::kBad : *busy > 0.6 ? Tone::kWatch : Tone::kGood;
  if (const auto threads = integer_at(lane, {"load", "threads"}))
    mark.note = "of " + std::to_string(*threads) + (*threads == 1 ? " thread" : " threads");
  return mark;
}

Mark in_flight_mark(const Json& lane) {
  const Json& flight = at(lane, {"load", "in_flight"});
  const auto most = integer_at(flight, {"max"}), target = integer_at(flight, {"target"});
  Mark mark{"Under way at most", most ? count(*most) : "not recorded", "", Tone::kPlain};
  if (!most) return mark;
  mark.tone = Tone::kGood;
  if (text_at(lane, {"load", "kind"}) == "closed" && target) {
    mark.value += " of " + count(*target);
    if (*most < *target) mark.tone = Tone::kWatch;
  }
  if (const auto mean = number_at(flight, {"mean"})) mark.note = "mean " + figure(*mean);
  if (const auto hits = integer_at(lane, {"load", "limit_hits"}); hits && *hits > 0) {
    mark.note += (mark.note.empty() ? "" : "; ") + count(*hits) + " waited for a place";
    mark.tone = Tone::kWatch;
  }
  return mark;
}

}  // namespace

std::string load_words(const Json& lane) {
  const std::string kind = text_at(lane, {"load", "kind"});
  if (kind.empty() || kind == "closed" || kind == "session") {
    const auto streams = integer_at(lane, {"concurrency"});
    if (!streams) return kind.empty() ? "none" : kind;
    return count(*streams) + (*streams == 1 ? " stream" : " streams");
  }
  auto rate = number_at(lane, {"load", "rate_target"});
  if (!rate) rate = number_at(lane, {"load", "rate_intended"});
  return one_line(kind) + (rate ? " " + rate_words(*rate) + "/s" : "");
}

std::string rate_words(double rate) {
  const auto whole = static_cast<int64_t>(rate);
  return rate >= 0 && rate < 1e6 && static_cast<double>(whole) == rate ? count(whole)
                                                                       : figure(rate);
}

std::string metric_words(std::string_view key) {
  const size_t dot = key.rfind(".p");
  const std::string_view member = dot == std::string_view::npos ? key : key.substr(0, dot);
  for (const auto& [known, words] : kMetricWords)
    if (known == member)
      return std::string(words) +
             (dot == std::string_view::npos ? "" : " " + std::string(key.substr(dot + 1)));
  return one_line(key);
}

std::string objective_words(const Json& objective) {
  const auto percentile = number_at(objective, {"percentile"}),
             threshold = number_at(objective, {"threshold"});
  const std::string key = text_at(objective, {"metric"});
  std::string out = metric_words(key);
  if (percentile) out += " p" + base::format_number(*percentile);
  if (threshold)
    out +=
        " \xE2\x89\xA4 " + (key.ends_with("_ms") ? milliseconds(*threshold) : figure(*threshold));
  return out;
}

Validity validity_of(const Facts& facts, const Json& lane) {
  Validity out;
  const Json& judged = at(lane, {"client"});
  out.known = judged.is_object();
  if (out.known) {
    out.valid = flag_at(judged, {"valid"}).value_or(true);
    out.invalid_reasons = words_in(list_at(judged, {"invalid_reasons"}));
    out.warnings = words_in(list_at(judged, {"warnings"}));
    const Json& client = recorded(facts, text_at(lane, {"id"}));
    out.marks = {error_mark(at(judged, {"calibration"})),
                 lateness_mark(client, lane),
                 busy_mark(judged, lane),
                 in_flight_mark(lane),
                 stamp_mark(judged, client),
                 token_mark(lane),
                 path_mark(judged),
                 steady_mark(lane)};
  }
  if (lane.is_object())
    for (const auto& [key, dist] : lane.items())
      for (const char* which : {"p50", "p90", "p95", "p99"}) {
        const Json& refused = at(dist, {"refused", which});
        if (!refused.is_object()) continue;
        out.refused.push_back({metric_words(key), which, number_at(refused, {"value"}).value_or(0),
                               number_at(refused, {"client_error_ms"}).value_or(0)});
      }
  return out;
}

std::vector<std::string> invalid_lanes(const Facts& facts) {
  std::vector<std::string> out;
  for (const Json& lane : list_at(facts.results, {"lanes"})) {
    if (flag_at(lane, {"client", "valid"}).value_or(true)) continue;
    for (const auto& reason : words_in(list_at(lane, {"client", "invalid_reasons"})))
      out.push_back("lane " + text_at(lane, {"id"}) + ": " + reason);
  }
  return out;
}

std::optional<double> throughput_of(const Json& lane) {
  const auto steady = number_at(lane, {"steady", "output_tok_s"});
  return steady ? steady : number_at(lane, {"aggregate_output_tok_s"});
}

}  // namespace anvil::report
