#include "engine/counters.h"

#include <cmath>
#include <string_view>

#include "base/strings.h"
#include "engine/engine_call.h"
#include "wire/prometheus.h"

namespace anvil::engine {

namespace {

constexpr const char* kGauges[] = {"running", "waiting", "kv_used_ratio"};
constexpr const char* kTotals[] = {"prompt_tokens", "cached_tokens",   "output_tokens", "drafts",
                                   "draft_tokens",  "accepted_tokens", "preemptions"};
constexpr const char* kPerPosition = "accepted_per_position";
constexpr size_t kMostPositions = 256;

// The names under which an engine line knows a counter, best first.
std::vector<std::string> series_names(const Json& metrics, const char* key) {
  const auto found = metrics.find(key);
  if (found == metrics.end()) return {};
  if (found->is_string()) return {found->get<std::string>()};
  return found->get<std::vector<std::string>>();
}

Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < 9e15) return static_cast<int64_t>(value);
  return value;
}

Json total(const std::vector<wire::MetricSample>& samples, const Json& metrics, const char* key) {
  for (const std::string& name : series_names(metrics, key)) {
    if (const auto value = wire::sum(samples, name)) return number(*value);
  }
  return nullptr;
}

Json by_position(const std::vector<wire::MetricSample>& samples, const Json& metrics) {
  for (const std::string& name : series_names(metrics, kPerPosition)) {
    Json list = Json::array();
    for (size_t position = 0; position < kMostPositions; ++position) {
      const auto value = wire::sum(samples, name, "position", std::to_string(position));
      if (!value) break;
      list.push_back(number(*value));
    }
    if (!list.empty()) return list;
  }
  return nullptr;
}

}  // namespace

Result<Json> normal_counters(const InterfaceTable& table, std::string_view prometheus_text) {
  static const Json kNone = Json::object();
  const auto samples = TRY(wire::parse_prometheus(prometheus_text));
  const auto found = table.document().find("metrics");
  const Json& metrics = found == table.document().end() ? kNone : *found;
  Json values = Json::object();
  for (const char* key : kGauges) values[key] = total(samples, metrics, key);
  for (const char* key : kTotals) values[key] = total(samples, metrics, key);
  values[kPerPosition] = by_position(samples, metrics);
  return values;
}

Result<Counters> read_counters(const InterfaceTable& table, const std::string& base_url,
                               const std::string& api_key) {
  const auto found = table.document().find("metrics");
  if (found == table.document().end() || !found->contains("path")) {
    return fail(Kind::kUnsupported, Side::kEngine, table.name() + " has no metrics endpoint");
  }
  const Nanos sent = mono_now();
  const std::string text = TRY(call_text(base_url, (*found)["path"], api_key));
  Counters counters;
  counters.at = sent + (mono_now() - sent) / 2;
  counters.values = TRY(normal_counters(table, text));
  return counters;
}

}  // namespace anvil::engine
