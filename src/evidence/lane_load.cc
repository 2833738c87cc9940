#include "evidence/lane_load.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "evidence/json_access.h"
#include "stats/early_stopping.h"

namespace anvil::evidence {

namespace {
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
// Two events this close left the kernel's buffer together.
constexpr Nanos kZeroGap = 20 * kMicrosecond;
// From here on our own processor time, not the engine, sets the pace.
constexpr double kBusyThread = 0.9;
constexpr double kLatenessMs = 1.0, kLatenessShare = 0.02;
constexpr double kStallUs = 50'000;

double millis(const std::optional<int64_t>& nanos) {
  return nanos ? static_cast<double>(*nanos) / 1e6 : kNone;
}

// n - 1 intervals between n moments.
std::optional<double> rate_of(const std::vector<Nanos>& moments) {
  if (moments.size() < 2) return std::nullopt;
  const auto [first, last] = std::minmax_element(moments.begin(), moments.end());
  if (*last <= *first) return std::nullopt;
  return static_cast<double>(moments.size() - 1) / (static_cast<double>(*last - *first) / 1e9);
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string percent(double share) {
  return fixed(share * 100, 1) + " %";
}

// "ttfo_ms_p90" -> ("ttfo_ms", 900).
std::optional<std::pair<std::string, stats::PerMille>> objective_of(const std::string& key) {
  const size_t mark = key.rfind("_p");
  if (mark == std::string::npos || mark + 2 >= key.size()) return std::nullopt;
  const std::string digits = key.substr(mark + 2);
  if (digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  unsigned q = static_cast<unsigned>(std::stoul(digits));
  if (digits.size() < 3) q *= 10;  // p90 is 900, p999 is 999
  if (q == 0 || q >= 1000) return std::nullopt;
  return std::pair(key.substr(0, mark), q);
}
}  // namespace

bool is_open_loop(const Json& spec) {
  const std::string kind = text(spec, "load");
  return kind == "constant" || kind == "poisson" || kind == "gamma" || kind == "steps" ||
         kind == "trace";
}

void LaneLoad::add(const RequestRow& row, const RowMetrics& metrics, bool counts) {
  ++total_;
  window_.add(row, metrics, counts);
  if (row.stamps.sent && *row.stamps.sent > 0) sent_.push_back(*row.stamps.sent);
  if (row.stamps.intended > 0) intended_.push_back(row.stamps.intended);
  Values values;
  values.fill(kNone);
  if (counts) {
    const auto end = row.stamps.done ? row.stamps.done : row.stamps.last_output;
    if (end && row.stamps.sent && *row.stamps.sent > 0 && *end >= *row.stamps.sent) {
      service.push_back(*end - *row.stamps.sent);
      values[kService] = millis(service.back());
      if (row.stamps.intended > 0 && *end >= row.stamps.intended) {
        schedule.push_back(*end - row.stamps.intended);
        values[kSchedule] = millis(schedule.back());
      }
    }
    values[kTtfe] = millis(metrics.ttfe);
    values[kTtfo] = millis(metrics.ttfo);
    values[kTtfv] = millis(metrics.ttfv);
    values[kE2e] = millis(metrics.e2e);
    values[kDone] = millis(metrics.done);
    values[kTpot] = metrics.tpot_ms.value_or(kNone);
    chunks_ += static_cast<int64_t>(row.chunks.size());
    for (size_t i = 1; i < row.chunks.size(); ++i) {
      ++gaps_;
      zero_gaps_ += row.chunks[i].since_sent - row.chunks[i - 1].since_sent <= kZeroGap;
    }
  }
  values_.push_back(values);
}

Json LaneLoad::describe(const Json& spec, const Json& recorded) const {
  const std::string kind = text(spec, "load");
  const Json& client = member(recorded, "client");
  return Json{{"kind", kind.empty() ? "closed" : kind},
              {"rate_target", open_loop_ ? or_null(number(spec, "rate")) : Json(nullptr)},
              {"rate_intended", or_null(open_loop_ ? rate_of(intended_) : std::nullopt)},
              {"rate_sent", or_null(rate_of(sent_))},
              {"limit_hits", or_null(integer(client, "limit_hits"))},
              {"in_flight", member(client, "in_flight")},
              {"connections", member(member(client, "connections"), "policy")},
              {"threads", or_null(integer(client, "threads"))},
              {"plan_digest", member(recorded, "plan_digest")}};
}

std::optional<LaneLoad::Metric> LaneLoad::metric_named(const std::string& name) {
  static constexpr std::pair<std::string_view, Metric> kNames[] = {
      {"ttfe_ms", kTtfe}, {"ttfo_ms", kTtfo}, {"ttfv_ms", kTtfv},       {"e2e_ms", kE2e},
      {"done_ms", kDone}, {"tpot_ms", kTpot}, {"service_ms", kService}, {"schedule_ms", kSchedule}};
  for (const auto& [known, metric] : kNames)
    if (known == name) return metric;
  return std::nullopt;
}

Json LaneLoad::goodput(const Json& spec) {
  const Json& declared = member(spec, "objectives");
  if (!declared.is_object() || declared.empty()) return nullptr;
  std::vector<bool> met(values_.size(), true);
  Json objectives = Json::array();
  for (const auto& [key, value] : declared.items()) {
    const auto objective = objective_of(key);
    const auto metric = objective ? metric_named(objective->first) : std::nullopt;
    if (!metric || !value.is_number()) continue;
    const double threshold = value.get<double>();
    size_t within = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      const double measured = values_[i][*metric];
      const bool ok = !std::isnan(measured) && measured <= threshold;
      within += ok;
      if (!ok) met[i] = false;
    }
    const size_t n = values_.size();
    const auto allowed = n > 0 ? stats::allowed_over(n, objective->second) : std::nullopt;
    objectives.push_back({{"metric", objective->first},
                          {"percentile", static_cast<double>(objective->second) / 10},
                          {"threshold", threshold},
                          {"met", within},
                          {"of", n},
                          {"holds", n > 0 && within * 1000 >= n * objective->second},
                          {"proven", allowed && n - within <= *allowed}});
  }
  const auto all = std::count(met.begin(), met.end(), true);
  // Requests leave the lane in the time of its steady window and of its drain: from first to last.
  const auto spread = rate_of(open_loop_ ? intended_ : sent_);
  const double share = met.empty() ? 0 : static_cast<double>(all) / static_cast<double>(met.size());
  return Json{{"met", all},
              {"of", met.size()},
              {"share", met.empty() ? Json(nullptr) : Json(share)},
              {"req_s", spread ? Json(*spread * share) : Json(nullptr)},
              {"objectives", objectives}};
}

Json LaneLoad::judge_client(const Json& recorded, const Json& calibration) const {
  const Json& client = member(recorded, "client");
  Json invalid = Json::array(), warnings = Json::array();

  const auto cpu = number(client, "cpu_ns"), began = number(client, "began_ns"),
             ended = number(client, "ended_ns");
  const double threads = number(client, "threads").value_or(1);
  Json busy = nullptr;
  if (cpu && began && ended && *ended > *began && threads > 0) {
    busy = *cpu / (*ended - *began) / threads;
    if (busy.get<double>() > kBusyThread)
      invalid.push_back("our client was busy for " + percent(busy.get<double>()) +
                        " of the lane: it may have set the pace; use more threads");
  }
  const Json& lateness = member(client, "lateness_us");
  if (const auto p99 = number(lateness, "p99"); open_loop_ && p99) {
    std::vector<int64_t> sorted = service;
    std::sort(sorted.begin(), sorted.end());
    const double median = sorted.empty() ? 0 : millis(sorted[(sorted.size() - 1) / 2]);
    if (*p99 / 1e3 > std::max(kLatenessMs, kLatenessShare * median))
      invalid.push_back("requests left up to " + fixed(*p99 / 1e3, 1) +
                        " ms (p99) after their planned moment because our client was late");
  }
  const auto target = integer(member(client, "in_flight"), "target");
  const auto most = integer(member(client, "in_flight"), "max");
  if (!open_loop_ && target && most && *most < *target && total_ >= *target)
    invalid.push_back("only " + std::to_string(*most) + " of " + std::to_string(*target) +
                      " requests were ever under way at once");

  for (const auto& [member_name, what] :
       {std::pair<const char*, const char*>{"loop_lag_us", "our client's loop stood still for "},
        {"lateness_us", "one request left late by "}})
    if (const auto worst = number(member(client, member_name), "max"); worst && *worst > kStallUs)
      warnings.push_back(what + fixed(*worst / 1e3, 0) +
                         " ms: schedule latency shows it, service latency does not");
  if (flag(recorded, "prompt_tokens_estimated"))
    warnings.push_back("the engine counts no tokens: prompts have about the planned length");
  if (const auto hits = integer(client, "limit_hits"); hits && *hits > 0)
    warnings.push_back(std::to_string(*hits) +
                       " requests waited because as many as allowed were outstanding");
  if (const auto lost = integer(client, "retransmits"); lost && *lost > 0)
    warnings.push_back(std::to_string(*lost) + " TCP segments were retransmitted");
  if (calibration.is_object() && !flag(calibration, "valid"))
    warnings.push_back("the client's error is unknown: " + text(calibration, "because"));

  // Many events in one segment: something on the way holds the stream back.
  Json path = nullptr;
  if (gaps_ >= 8) {
    const double share = static_cast<double>(zero_gaps_) / static_cast<double>(gaps_);
    path = share >= 0.5 ? "buffered" : "streaming";
    if (share >= 0.5)
      warnings.push_back("buffered path: " + percent(share) +
                         " of the events arrived together with the one before; time to first "
                         "output and gaps are those of a buffer, not of the engine");
  }
  const auto kernel = integer(member(client, "stamp_source"), "kernel").value_or(0);
  const auto user = integer(member(client, "stamp_source"), "user").value_or(0);
  Json source = nullptr;
  if (kernel > 0 || user > 0) source = user == 0 ? "kernel" : kernel == 0 ? "user" : "mixed";
  return Json{{"valid", invalid.empty()},  {"invalid_reasons", invalid}, {"warnings", warnings},
              {"busy_share", busy},        {"stamp_source", source},     {"path", path},
              {"calibration", calibration}};
}

}  // namespace anvil::evidence
