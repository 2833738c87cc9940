#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace anvil::wire {

struct MetricSample {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;  // unescaped, in the order of the text
  double value = 0;                                         // may be NaN or infinite

  std::string_view label(std::string_view key) const;  // "" if absent
};

// Prometheus text exposition format 0.0.4 and the OpenMetrics lines that differ only in comments
// and exemplars. HELP, TYPE, timestamps and exemplars are skipped. kProtocol names the line.
Result<std::vector<MetricSample>> parse_prometheus(std::string_view text);

// `name` and `name_total` are the same metric.
bool same_metric(std::string_view a, std::string_view b);
// Sum over all label sets; nothing when no sample has the name. NaN samples are left out.
std::optional<double> sum(const std::vector<MetricSample>& samples, std::string_view name);
// Likewise, of the samples that carry label = value.
std::optional<double> sum(const std::vector<MetricSample>& samples, std::string_view name,
                          std::string_view label, std::string_view value);

}  // namespace anvil::wire
