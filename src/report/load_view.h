#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/view.h"

// What the formats say alike about how a lane was loaded and whether its client can be believed.
namespace anvil::report {

// "4 streams", "constant 2.50/s", "none" for a lane that says nothing.
std::string load_words(const Json& lane);
// "9" or "2.50".
std::string rate_words(double rate);
// "TTFO" for "ttfo_ms", "decode tok/s p50" for "decode_tok_s.p50"; other names as they are.
std::string metric_words(std::string_view key);
// "TTFO p90 ≤ 500 ms".
std::string objective_words(const Json& objective);

// One cell of the validity strip.
struct Mark {
  std::string label, value, note;
  Tone tone = Tone::kPlain;
};

struct RefusedPercentile {
  std::string metric, which;  // "TTFO", "p99"
  double value_ms = 0, client_error_ms = 0;
};

struct Validity {
  // Something is known of the client: older runs recorded nothing.
  bool known = false;
  bool valid = true;
  std::vector<std::string> invalid_reasons, warnings;
  std::vector<Mark> marks;
  std::vector<RefusedPercentile> refused;
};
Validity validity_of(const Facts& facts, const Json& lane);

// "lane c4: our client was busy ..." for each reason of each lane whose client was the bottleneck.
std::vector<std::string> invalid_lanes(const Facts& facts);

// Tokens per second of all streams: of the steady window where there is one, else of the whole
// lane.
std::optional<double> throughput_of(const Json& lane);

}  // namespace anvil::report
