#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "measure/arrivals.h"
#include "measure/client.h"
#include "measure/lengths.h"
#include "wire/answer.h"
#include "wire/chat_request.h"

namespace anvil::measure {

// When the requests of a lane are sent.
enum class Load { kClosed, kConstant, kPoisson, kGamma, kSteps, kTrace, kSessions };
std::string_view name(Load load);

// One part of a mixture.
struct MixPart {
  std::string name;
  double weight = 1;
  Length prompt_tokens, output_tokens;
};

// A service-level objective: at least `share` of the requests have `metric` within `limit`.
struct Objective {
  std::string name;    // "ttfo_ms_p90"
  std::string metric;  // "ttfo_ms"
  double share = 0.9;
  double limit = 0;  // ms
};

// One [[lane]] of a suite, as docs/suite.md describes it.
struct LanePlan {
  std::string id;
  Load load = Load::kClosed;
  Length prompt_tokens = 512;
  Length output_tokens = 128;
  int concurrency = 1;
  int requests = 12;  // 0: as many as `duration_s`, the steps or the trace give
  int warmup = 2;
  // "cold": every prompt begins with its own nonce; "prefix": prompts share their first nine
  // tenths (or prefix_tokens), primed by one unmeasured request per group; "replay": they repeat
  // what was sent before.
  std::string cache = "cold";
  bool fixed_output = true;  // ignore_eos, min_tokens = max_tokens
  wire::Api api = wire::Api::kChat;
  bool stream = true;

  double rate = 0;  // requests/s; of sessions: 0 = by concurrency
  double burstiness = 1;
  std::vector<RateStep> steps;
  ArrivalProcess step_process = ArrivalProcess::kPoisson;
  std::string trace;  // file
  double trace_scale = 1;
  std::optional<double> duration_s;
  int max_outstanding = 512;
  std::optional<double> drain_s;  // after the last arrival; nothing: until all have ended
  int sessions = 0, turns = 0;
  double think_time_s = 0;
  bool think_exponential = false;
  int prefix_groups = 1;
  std::optional<int64_t> prefix_tokens;
  std::string prompts = "synthetic";  // or "sharegpt:FILE", "messages:FILE", "text:FILE"
  std::vector<MixPart> mix;
  Connections connections = Connections::kReuse;
  int threads = 1;
  bool respect_retry_after = false;
  std::vector<Objective> objectives;
  bool find_knee = false;  // `rate` is where the search for the highest good one begins

  // Whether moments are planned, so that latency counts from them.
  bool open_loop() const;
  // Requests that may be in flight: `concurrency`, or `max_outstanding` where moments are planned.
  int most_in_flight() const;
};
// Reads an element of suite["lane"] (the canonical form, or a table that a command made up); absent
// keys keep the defaults above. kInvalidInput names lane and key; what a lane needs for its load
// must be there.
Result<LanePlan> lane_plan(const Json& lane);

// How the client goes about the measured attempts of the lane.
LoadOptions load_options(const LanePlan& lane);

// What the lanes of one run have in common.
struct LaneContext {
  std::string model;
  uint64_t seed = 0;   // of the suite: same seed, same prompts
  std::string salt;    // of the run, for the nonces
  std::string effort;  // "" sends none
  double temperature = 0;
  Json extra;       // null or an object merged into every body
  Json cold_extra;  // likewise, cold lanes only, e.g. {"cache_prompt": false}
};

// The request that the lane makes of these messages (completions: of their texts) and budget.
wire::GenerationRequest lane_request(const LanePlan& lane, const LaneContext& context,
                                     std::vector<wire::ChatMessage> messages, int64_t max_tokens);
// The body of a request with one user message. The token counter must send or count the same
// surface.
std::string lane_body(const LanePlan& lane, const LaneContext& context, const std::string& prompt);

}  // namespace anvil::measure
