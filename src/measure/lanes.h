#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "measure/client.h"
#include "measure/prompts.h"
#include "wire/answer.h"

namespace anvil::measure {

// One [[lane]] of a suite.
struct LanePlan {
  std::string id;
  int64_t prompt_tokens = 512;
  int64_t output_tokens = 128;
  int concurrency = 1;
  int requests = 12;
  int warmup = 2;
  std::string cache = "cold";  // "cold": every prompt begins with its own nonce; "prefix": they
                               // share their first nine tenths, primed by one unmeasured request
  bool fixed_output = true;    // ignore_eos, min_tokens = max_tokens
  wire::Api api = wire::Api::kChat;
  bool stream = true;
};
// Reads an element of suite["lane"]; absent keys keep the defaults above. kInvalidInput names lane
// and key.
Result<LanePlan> lane_plan(const Json& lane);

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

// The body of a request with that prompt. The token counter must send or count the same surface.
std::string lane_body(const LanePlan& lane, const LaneContext& context, const std::string& prompt);

// The attempts of a lane in the order in which they must be sent: all of `unmeasured` (warm-up,
// and for prefix lanes the priming request last) with concurrency 1, then `measured`.
struct LaneAttempts {
  std::vector<Attempt> unmeasured;
  std::vector<Attempt> measured;
  int counter_calls = 0;
};
// Rows get purpose, lane, item ("warmup-0", "prime", "request-0"), effort, api, stream,
// concurrency, cache_state and expect = {"prompt_tokens": target, "output_tokens": n when fixed}.
// Warm-up prompts have filler and nonces of their own. `made` is called with the number of prompts
// made, for progress.
Result<LaneAttempts> build_lane(const LanePlan& lane, const LaneContext& context,
                                PromptBuilder& prompts, const std::function<void(int)>& made = {});

}  // namespace anvil::measure
