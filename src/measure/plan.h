#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "measure/client.h"
#include "measure/lanes.h"
#include "measure/prompts.h"

namespace anvil::measure {

// Everything that a lane will send, made before its first request.
struct LaneAttempts {
  // Sent first, one after the other: warm-up with prompts of its own, then what primes a cache.
  std::vector<Attempt> unmeasured;
  // Sent together under load_options().
  std::vector<Attempt> measured;
  int counter_calls = 0;
  // SHA-256 over the load itself: moments and dependencies, messages, budgets, surface, limits; all
  // attempts in order. Not in it: the salt's nonces, model name, effort, and what this engine's
  // table adds to bodies. Two arms with one digest were asked the same at the same moments.
  std::string plan_digest;
  // {"load","digest","bodies_sha256": over all bodies with the nonces of no salt,"seed",
  // "unmeasured","measured","prompts":{"source","sha256","items","left_out","nonce"},
  // "making":{"method","texts","filled_up","counter_calls"},"prompt_tokens" and "output_tokens":
  // {"min","mean","max","sum"} (prompt tokens null where unknown),"arrivals": describe_arrivals()
  // or null,"sessions":{"sessions","turns","think_s"} or null,"groups","parts": requests by part of
  // the mixture,"trace":{"sha256","entries","unordered","shared_tokens"} or null,
  // "max_in_flight","drain_s"}
  Json summary;
};

// Makes the attempts of a lane. Lengths, arrivals, shares of a mixture, groups, think times and
// samples are drawn first, each from its own seed; then the prompts are made (PromptPool); the
// same lane, context and counter give the same attempts. The salt of the context only enters
// nonces, of which every attempt has its own (unless it repeats another by design).
//
// Rows get purpose, lane, item ("warmup-0", "prime", "request-0", "session-3/turn-1"), effort, api,
// stream, concurrency (most in flight), cache_state, arrival, turn and expect = {"prompt_tokens"
// where it is exact, "output_tokens" when fixed, "part" of a mixture, "prompt": item of a file}.
// `made` is called with the number of texts made, for progress.
//
// Errors: the counter's own; kInvalidInput for files that cannot be used (with FILE:LINE), for
// prompts too short for their fixed parts, and for more than 1,000,000 requests.
Result<LaneAttempts> build_lane(const LanePlan& lane, const LaneContext& context,
                                PromptBuilder& prompts, const std::function<void(int)>& made = {});

}  // namespace anvil::measure
