#include <algorithm>
#include <cmath>

#include "evidence/derive_parts.h"
#include "evidence/json_access.h"

namespace anvil::evidence {

namespace {
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

std::optional<double> seconds_between(const std::optional<int64_t>& from,
                                      const std::optional<int64_t>& to) {
  if (!from || !to || *from <= 0 || *to < *from) return std::nullopt;
  return static_cast<double>(*to - *from) / 1e9;
}

std::optional<int64_t> launch_began(const Json& launch, const std::vector<Json>& journal) {
  if (const auto began = integer(launch, "began_ns")) return began;
  for (const Json& line : journal)
    if (text(line, "event") == "begin" && text(line, "step") == "launch")
      return integer(line, "mono_ns");
  return std::nullopt;
}

void lower(std::optional<double>& least, const std::optional<double>& value) {
  if (value) least = std::min(least.value_or(*value), *value);
}
void raise(std::optional<double>& most, const std::optional<double>& value) {
  if (value) most = std::max(most.value_or(*value), *value);
}
std::optional<double> scaled(const std::optional<double>& value, double divisor) {
  if (!value) return std::nullopt;
  return *value / divisor;
}
}  // namespace

void RequestTotals::add(const RequestRow& row) {
  ++total_;
  if (row.outcome == Outcome::kOk) ++ok_;
  ++by_outcome_[std::string(name(row.outcome))];
  ++by_purpose_[std::string(name(row.purpose))];
}

Json RequestTotals::finish() const {
  return Json{{"total", total_},
              {"ok", ok_},
              {"failed", total_ - ok_},
              {"by_outcome", by_outcome_},
              {"by_purpose", by_purpose_}};
}

void Hardware::add(const Json& sample) {
  ++samples_;
  lower(least_available_, number(member(sample, "host"), "mem_available"));
  // Of an engine that somebody else runs no process is known: that is no memory of 0 bytes.
  if (integer(member(sample, "engine"), "pids").value_or(1) > 0) {
    raise(most_rss_, number(member(sample, "engine"), "rss"));
    raise(most_cpu_, number(member(sample, "engine"), "cpu_ns"));
  }
  size_t position = 0;
  for (const Json& card : elements(member(sample, "gpus"))) {
    Json role = member(card, "role"), index = member(card, "index");
    if (index.is_null()) index = position;
    ++position;
    Gpu* gpu = nullptr;
    for (Gpu& known : gpus_)
      if (role.is_null() ? known.role.is_null() && known.index == index : known.role == role)
        gpu = &known;
    if (!gpu) gpu = &gpus_.emplace_back(Gpu{role, index, {}, {}, {}});
    lower(gpu->least_free, number(card, "mem_free"));
    raise(gpu->most_power, number(card, "power_mw"));
    raise(gpu->most_temperature, number(card, "temp_c"));
  }
}

Json Hardware::finish() const {
  Json gpus = Json::array();
  for (const Gpu& gpu : gpus_)
    gpus.push_back(Json{{"role", gpu.role},
                        {"index", gpu.index},
                        {"min_free_gib", or_null(scaled(gpu.least_free, kGib))},
                        {"peak_power_w", or_null(scaled(gpu.most_power, 1000))},
                        {"max_temp_c", or_null(gpu.most_temperature)}});
  return Json{{"samples", samples_},
              {"host", {{"min_available_gib", or_null(scaled(least_available_, kGib))}}},
              {"engine",
               {{"peak_rss_gib", or_null(scaled(most_rss_, kGib))},
                {"cpu_s", or_null(scaled(most_cpu_, 1e9))}}},
              {"gpus", gpus}};
}

Json derive_identity(const Json& identity) {
  if (!identity.is_object())
    return Json{{"match", nullptr},
                {"mismatch", nullptr},
                {"not_observable", nullptr},
                {"fields", Json::array()}};
  int64_t match = 0, mismatch = 0, hidden = 0;
  Json fields = Json::array();
  for (const Json& field : elements(member(identity, "fields"))) {
    const std::string verdict = text(field, "verdict");
    match += verdict == "match";
    mismatch += verdict == "mismatch";
    hidden += verdict == "not observable";
    fields.push_back(Json{{"field", member(field, "field")}, {"verdict", verdict}});
  }
  return Json{
      {"match", match}, {"mismatch", mismatch}, {"not_observable", hidden}, {"fields", fields}};
}

Json derive_startup(const Json& launch, const std::vector<Json>& journal) {
  const auto began = launch_began(launch, journal);
  const auto ready = integer(launch, "ready_ns");
  const auto& phases = elements(member(launch, "phases"));
  Json out = Json::array();
  for (size_t i = 0; i < phases.size(); ++i) {
    const auto next = i + 1 < phases.size() ? integer(phases[i + 1], "at_ns") : ready;
    out.push_back(Json{{"name", member(phases[i], "name")},
                       {"seconds", or_null(seconds_between(integer(phases[i], "at_ns"), next))}});
  }
  return Json{{"ready_s", or_null(seconds_between(began, ready))}, {"phases", out}};
}

Json derive_stop(const Json& launch) {
  const Json& stop = member(launch, "stop");
  // An engine that never ran proves nothing by being gone.
  if (!stop.is_object() || text(stop, "how") == "not running")
    return Json{
        {"clean", nullptr}, {"port_free", nullptr}, {"left", nullptr}, {"seconds", nullptr}};
  const Json& left = member(stop, "left");
  const Json& port_free = member(stop, "port_free");
  return Json{{"clean", elements(left).empty() && port_free != false},
              {"port_free", port_free},
              {"left", elements(left).size()},
              {"seconds", member(stop, "seconds")}};
}

Json derive_checks(const Json& checks) {
  int64_t passed = 0, failed = 0, skipped = 0;
  Json items = Json::array();
  Json by_id = Json::object();
  for (const Json& check : elements(member(checks, "checks"))) {
    const std::string id = text(check, "id");
    const std::string verdict = text(check, "verdict");
    Json& counts = by_id[id];
    if (counts.is_null()) counts = Json{{"passed", 0}, {"failed", 0}, {"skipped", 0}};
    // Anything but a pass or a skip counts as failed.
    Json pass = false;
    if (verdict == "pass") {
      ++passed;
      counts["passed"] = counts["passed"].get<int64_t>() + 1;
      pass = true;
    } else if (verdict == "skipped") {
      ++skipped;
      counts["skipped"] = counts["skipped"].get<int64_t>() + 1;
      pass = nullptr;
    } else {
      ++failed;
      counts["failed"] = counts["failed"].get<int64_t>() + 1;
    }
    items.push_back(Json{{"id", id},
                         {"effort", text(check, "effort")},
                         {"attempt", or_null(integer(check, "attempt"))},
                         {"passed", pass},
                         {"verdict", verdict}});
  }
  return Json{{"passed", passed},   {"failed", failed},
              {"skipped", skipped}, {"total", passed + failed + skipped},
              {"items", items},     {"by_id", by_id}};
}

Json derive_fingerprint(const Json& checks) {
  const Json& fingerprint = member(checks, "fingerprint");
  Json efforts = Json::array();
  std::optional<int64_t> first;
  for (const Json& effort : elements(member(fingerprint, "efforts"))) {
    const auto tokens = integer(effort, "prompt_tokens");
    if (!first) first = tokens;
    std::optional<int64_t> delta;
    if (tokens && first) delta = *tokens - *first;
    efforts.push_back(Json{{"effort", text(effort, "effort")},
                           {"prompt_tokens", or_null(tokens)},
                           {"delta", or_null(delta)},
                           {"declared", or_null(integer(effort, "declared"))},
                           {"verdict", member(effort, "verdict")}});
  }
  return Json{{"verdict", member(fingerprint, "verdict")}, {"efforts", efforts}};
}

Json derive_wall_clock(const std::vector<Json>& journal) {
  std::optional<int64_t> first;
  int64_t step = 0;
  for (const Json& line : journal) {
    const auto mono = integer(line, "mono_ns"), wall = integer(line, "wall_ns");
    int64_t offset = 0, change = 0;
    if (!mono || !wall || __builtin_sub_overflow(*wall, *mono, &offset)) continue;
    if (!first) first = offset;
    if (__builtin_sub_overflow(offset, *first, &change)) continue;
    if (std::abs(static_cast<double>(change)) > std::abs(static_cast<double>(step))) step = change;
  }
  if (!first) return Json{{"step_ms", nullptr}};
  return Json{{"step_ms", step / 1'000'000}};
}

}  // namespace anvil::evidence
