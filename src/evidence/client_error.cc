#include "evidence/client_error.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "evidence/json_access.h"

namespace anvil::evidence {

namespace {
constexpr double kShare = 0.02;    // of the value
constexpr double kAlwaysMs = 1.0;  // an error up to this is never a reason
constexpr std::pair<const char*, double> kPercentiles[] = {
    {"p50", 0.50}, {"p90", 0.90}, {"p95", 0.95}, {"p99", 0.99}};

std::vector<Nanos> magnitudes(const Json& array) {
  std::vector<Nanos> out;
  for (const Json& value : elements(array))
    if (value.is_number_integer()) {
      const int64_t error = value.get<int64_t>();
      if (error > INT64_MIN) out.push_back(error < 0 ? -error : error);
    }
  std::sort(out.begin(), out.end());
  return out;
}

// Nearest rank. With few values the upper percentiles are the largest one, which errs to the safe
// side.
Nanos at(const std::vector<Nanos>& sorted, double q) {
  const auto n = static_cast<double>(sorted.size());
  const auto rank = static_cast<size_t>(std::max(1.0, std::ceil(q * n - 1e-9)));
  return sorted[std::min(rank, sorted.size()) - 1];
}

Json describe(const std::vector<Nanos>& sorted) {
  if (sorted.empty()) return nullptr;
  const auto micros = [](Nanos value) { return static_cast<double>(value) / 1e3; };
  Json out{
      {"n", sorted.size()}, {"p999", micros(at(sorted, 0.999))}, {"max", micros(sorted.back())}};
  for (const auto& [name, q] : kPercentiles) out[name] = micros(at(sorted, q));
  return out;
}
}  // namespace

ClientError::ClientError(const Json& calibration) {
  for (const Json& entry : elements(member(calibration, "points"))) {
    Point point;
    point.lane = text(entry, "lane");
    point.concurrency = member(entry, "concurrency");
    point.events_per_s = member(entry, "events_per_s");
    point.stamp = magnitudes(member(entry, "stamp_error_ns"));
    point.first_output = magnitudes(member(entry, "first_output_error_ns"));
    point.gap = magnitudes(member(entry, "gap_error_ns"));
    const Json& server = member(entry, "server");
    if (flag(server, "void")) {
      point.because = "the scripted engine itself was late: " + text(server, "void_because");
    } else if (point.stamp.empty()) {
      point.because = "no event was received";
    } else {
      point.valid = true;
    }
    points_.push_back(std::move(point));
  }
}

const ClientError::Point* ClientError::find(const std::string& lane) const {
  for (const Point& point : points_)
    if (point.lane == lane) return &point;
  return nullptr;
}

const std::vector<Nanos>& ClientError::values(const Point& point, Of what) {
  return what == Of::kStamp ? point.stamp : what == Of::kGap ? point.gap : point.first_output;
}

Json ClientError::summary(const std::string& lane) const {
  const Point* point = find(lane);
  if (!point) return nullptr;
  return Json{
      {"concurrency", point->concurrency},  {"events_per_s", point->events_per_s},
      {"stamp_us", describe(point->stamp)}, {"first_output_us", describe(point->first_output)},
      {"gap_us", describe(point->gap)},     {"valid", point->valid},
      {"because", point->because}};
}

void ClientError::annotate(const std::string& lane, Of what, Json& distribution) const {
  const Point* point = find(lane);
  if (!point || !point->valid || integer(distribution, "n").value_or(0) == 0) return;
  const std::vector<Nanos>& sorted = values(*point, what);
  if (sorted.empty()) return;
  Json errors = Json::object(), refused = Json::object();
  for (const auto& [name, q] : kPercentiles) {
    const double error = static_cast<double>(at(sorted, q)) / 1e6;
    errors[name] = error;
    const auto value = number(distribution, name);
    if (!value || error <= std::max(kAlwaysMs, kShare * *value)) continue;
    refused[name] = {{"value", *value}, {"client_error_ms", error}};
    distribution[name] = nullptr;
  }
  distribution["client_error_ms"] = errors;
  if (!refused.empty()) distribution["refused"] = refused;
}

}  // namespace anvil::evidence
