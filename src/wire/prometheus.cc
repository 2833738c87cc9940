#include "wire/prometheus.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/strings.h"

namespace anvil::wire {

namespace {

constexpr std::string_view kTotal = "_total";

bool is_name_char(char c, bool first) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
         (!first && c >= '0' && c <= '9');
}

// Reads one line from its front.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  void skip_space() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) {
      rest_.remove_prefix(1);
    }
  }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view take_name() {
    size_t length = 0;
    while (length < rest_.size() && is_name_char(rest_[length], length == 0)) ++length;
    return advance(length);
  }
  std::string_view take_word() {
    return advance(std::min(rest_.find_first_of(" \t"), rest_.size()));
  }
  // Behind the opening quote; false when the closing one is missing or an escape is unknown.
  bool take_quoted(std::string& out) {
    while (!rest_.empty()) {
      const char c = advance(1).front();
      if (c == '"') return true;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (rest_.empty()) return false;
      const char escaped = advance(1).front();
      if (escaped == 'n') {
        out += '\n';
      } else if (escaped == '\\' || escaped == '"') {
        out += escaped;
      } else {
        return false;
      }
    }
    return false;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view advance(size_t length) {
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }
  std::string_view rest_;
};

std::optional<double> value_of(std::string_view word) {
  std::string_view magnitude = word;
  double sign = 1;
  if (!magnitude.empty() && (magnitude.front() == '+' || magnitude.front() == '-')) {
    sign = magnitude.front() == '-' ? -1 : 1;
    magnitude.remove_prefix(1);
  }
  if (base::iequals(magnitude, "inf") || base::iequals(magnitude, "infinity")) {
    return sign * std::numeric_limits<double>::infinity();
  }
  if (base::iequals(magnitude, "nan")) return std::numeric_limits<double>::quiet_NaN();
  if (magnitude.empty() || magnitude.front() == '+' || magnitude.front() == '-')
    return std::nullopt;
  const std::optional<double> number = base::parse_double(magnitude);
  if (!number) return std::nullopt;
  return sign * *number;
}

// "" when the line is well formed, else what is wrong with it.
std::string_view read_sample(std::string_view text, MetricSample& sample) {
  Line line(text);
  sample.name = line.take_name();
  if (sample.name.empty()) return "metric name is missing";
  line.skip_space();
  if (line.take('{')) {
    for (;;) {
      line.skip_space();
      if (line.take('}')) break;
      const std::string_view key = line.take_name();
      line.skip_space();
      if (key.empty() || !line.take('=')) return "malformed label";
      line.skip_space();
      std::string value;
      if (!line.take('"') || !line.take_quoted(value)) return "malformed label value";
      sample.labels.emplace_back(key, std::move(value));
      line.skip_space();
      if (!line.take(',') && !line.rest().starts_with('}')) return "malformed label list";
    }
    line.skip_space();
  }
  const std::optional<double> value = value_of(line.take_word());
  if (!value) return "malformed value";
  sample.value = *value;
  line.skip_space();
  // A timestamp and an exemplar may follow; neither is used.
  if (line.rest().empty() || line.rest().starts_with('#')) return {};
  if (!value_of(line.take_word())) return "malformed timestamp";
  line.skip_space();
  return line.rest().empty() || line.rest().starts_with('#') ? std::string_view()
                                                             : "unexpected text behind the value";
}

std::string_view without_total(std::string_view name) {
  return name.ends_with(kTotal) ? name.substr(0, name.size() - kTotal.size()) : name;
}

template <class Accept>
std::optional<double> sum_if(const std::vector<MetricSample>& samples, Accept&& accept) {
  std::optional<double> total;
  for (const MetricSample& sample : samples) {
    if (std::isnan(sample.value) || !accept(sample)) continue;
    total = total.value_or(0) + sample.value;
  }
  return total;
}

}  // namespace

std::string_view MetricSample::label(std::string_view key) const {
  for (const auto& pair : labels) {
    if (pair.first == key) return pair.second;
  }
  return {};
}

Result<std::vector<MetricSample>> parse_prometheus(std::string_view text) {
  std::vector<MetricSample> samples;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = base::trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    MetricSample sample;
    const std::string_view wrong = read_sample(line, sample);
    if (!wrong.empty()) {
      return fail(Kind::kProtocol, Side::kUpstream,
                  "metrics line " + std::to_string(number) + ": " + std::string(wrong) + ": '" +
                      base::to_valid_utf8(line.substr(0, 80)) + "'");
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

bool same_metric(std::string_view a, std::string_view b) {
  return without_total(a) == without_total(b);
}

std::optional<double> sum(const std::vector<MetricSample>& samples, std::string_view name) {
  return sum_if(samples,
                [&](const MetricSample& sample) { return same_metric(sample.name, name); });
}

std::optional<double> sum(const std::vector<MetricSample>& samples, std::string_view name,
                          std::string_view label, std::string_view value) {
  return sum_if(samples, [&](const MetricSample& sample) {
    return same_metric(sample.name, name) && sample.label(label) == value;
  });
}

}  // namespace anvil::wire
