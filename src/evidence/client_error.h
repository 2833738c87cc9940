#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace anvil::evidence {

// The error of our own client, measured against the scripted engine in the same run
// (calibration.json), and what it allows to be published.
//
// A percentile is refused when the client's error at that percentile is larger than 2 % of its
// value and larger than 1 ms: {"client_error_ms":{"p50",...},"refused":{"p99":{"value",
// "client_error_ms"}}} is added to the distribution and the percentile becomes null.
//
// Lifecycle: one per derivation. One thread.
class ClientError {
 public:
  // What an error is the error of: of one moment, of the first output since `sent`, of the time
  // between two events.
  enum class Of { kStamp, kFirstOutput, kGap };

  explicit ClientError(const Json& calibration);

  // The point that was measured for that lane: {"concurrency","events_per_s","stamp_us",
  // "first_output_us","gap_us","valid","because"}, errors as {"n","p50","p90","p95","p99","p999",
  // "max"} in microseconds. Null when the lane was not calibrated.
  Json summary(const std::string& lane) const;
  // Adds the error to a distribution in milliseconds. A lane without a valid point, or
  // distribution without values, stays as it is.
  void annotate(const std::string& lane, Of what, Json& distribution) const;

 private:
  struct Point {
    std::string lane;
    Json concurrency = nullptr, events_per_s = nullptr;
    std::vector<Nanos> stamp, first_output, gap;  // magnitudes, sorted
    bool valid = false;
    std::string because;
  };
  const Point* find(const std::string& lane) const;
  static const std::vector<Nanos>& values(const Point& point, Of what);

  std::vector<Point> points_;
};

}  // namespace anvil::evidence
