#include "measure/plan.h"

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "measure/plan_draft.h"

namespace anvil::measure {

namespace {

// Numbers of tokens of the measured requests.
class TokenSums {
 public:
  void add(int64_t tokens) {
    known_ = known_ && tokens > 0;
    least_ = count_ == 0 ? tokens : std::min(least_, tokens);
    most_ = std::max(most_, tokens);
    sum_ += tokens;
    ++count_;
  }
  Json to_json() const {
    if (count_ == 0 || !known_) return nullptr;
    return {{"min", least_},
            {"mean", static_cast<double>(sum_) / static_cast<double>(count_)},
            {"max", most_},
            {"sum", sum_}};
  }

 private:
  bool known_ = true;
  int64_t least_ = 0, most_ = 0, sum_ = 0, count_ = 0;
};

class Assembler {
 public:
  Assembler(const LanePlan& lane, const LaneContext& context) : lane_(lane), context_(context) {}

  LaneAttempts assemble(LaneDraft draft) {
    LaneAttempts out;
    out.counter_calls = draft.counter_calls;
    hash_line({{"lane", lane_.id},
               {"load", name(lane_.load)},
               {"api", wire::name(lane_.api)},
               {"stream", lane_.stream},
               {"fixed_output", lane_.fixed_output},
               {"cache", lane_.cache},
               {"temperature", context_.temperature},
               {"max_in_flight", lane_.most_in_flight()},
               {"connections", name(lane_.connections)},
               {"drain_s", lane_.drain_s ? Json(*lane_.drain_s) : Json(nullptr)}});
    for (auto* list : {&draft.warmup, &draft.prime})
      for (PlannedAttempt& each : *list)
        out.unmeasured.push_back(attempt(each, evidence::Purpose::kWarmup));
    TokenSums prompt, output;
    std::map<std::string, int64_t> parts;
    std::vector<Nanos> moments;
    Nanos think = 0;
    for (PlannedAttempt& each : draft.measured) {
      prompt.add(each.prompt_tokens);
      output.add(each.output_tokens);
      if (!each.part.empty()) ++parts[each.part];
      if (each.at) moments.push_back(*each.at);
      think += each.think;
      out.measured.push_back(attempt(each, evidence::Purpose::kLane));
    }
    out.plan_digest = plan_.finish();
    out.summary = {{"load", name(lane_.load)},
                   {"digest", out.plan_digest},
                   {"bodies_sha256", bodies_.finish()},
                   {"seed", context_.seed},
                   {"unmeasured", out.unmeasured.size()},
                   {"measured", out.measured.size()},
                   {"prompts", std::move(draft.prompts)},
                   {"making", std::move(draft.making)},
                   {"prompt_tokens", prompt.to_json()},
                   {"output_tokens", output.to_json()},
                   {"arrivals", lane_.open_loop() ? describe_arrivals(moments) : Json(nullptr)},
                   {"sessions", lane_.load == Load::kSessions
                                    ? Json{{"sessions", lane_.sessions},
                                           {"turns", lane_.turns},
                                           {"think_s", static_cast<double>(think) / 1e9}}
                                    : Json(nullptr)},
                   {"groups", lane_.cache == "prefix" ? Json(lane_.prefix_groups) : Json(nullptr)},
                   {"parts", parts.empty() ? Json(nullptr) : Json(parts)},
                   {"trace", std::move(draft.trace)},
                   {"max_in_flight", lane_.most_in_flight()},
                   {"drain_s", lane_.drain_s ? Json(*lane_.drain_s) : Json(nullptr)}};
    return out;
  }

 private:
  void hash_line(const Json& line) {
    plan_.update(base::canonical(line));
    plan_.update("\n");
  }

  std::string body(const PlannedAttempt& planned, bool with_salt) const {
    std::vector<wire::ChatMessage> messages;
    for (const PlannedMessage& message : planned.messages)
      messages.push_back({.role = message.role,
                          .content = with_salt ? salted(message.text, context_.seed, context_.salt)
                                               : message.text.text});
    return wire::to_body(lane_request(lane_, context_, std::move(messages), planned.output_tokens));
  }

  void hash(const PlannedAttempt& planned) {
    Json messages = Json::array();
    for (const PlannedMessage& message : planned.messages)
      messages.push_back({message.role, message.text.text});
    hash_line({{"item", planned.item},
               {"at", planned.at ? Json(*planned.at) : Json(nullptr)},
               {"after", planned.after},
               {"think", planned.think},
               {"budget", planned.output_tokens},
               {"messages", std::move(messages)}});
    bodies_.update(body(planned, false));
    bodies_.update("\n");
  }

  // Consumes the texts.
  Attempt attempt(PlannedAttempt& planned, evidence::Purpose purpose) {
    hash(planned);
    const bool measured = purpose == evidence::Purpose::kLane;
    Attempt out;
    out.row.purpose = purpose;
    out.row.lane = lane_.id;
    out.row.item = planned.item;
    out.row.effort = context_.effort;
    out.row.api = lane_.api;
    out.row.stream = lane_.stream;
    out.row.concurrency = measured ? lane_.most_in_flight() : 1;
    if (measured) out.row.cache_state = lane_.cache;
    if (measured)
      out.row.arrival = lane_.load == Load::kClosed     ? "closed"
                        : lane_.load == Load::kSessions ? "session"
                                                        : "open";
    out.row.turn = planned.turn;
    out.row.expect = Json::object();
    if (planned.prompt_tokens > 0) out.row.expect["prompt_tokens"] = planned.prompt_tokens;
    if (lane_.fixed_output) out.row.expect["output_tokens"] = planned.output_tokens;
    if (!planned.part.empty()) out.row.expect["part"] = planned.part;
    if (!planned.prompt.empty()) out.row.expect["prompt"] = planned.prompt;
    if (!planned.session.empty()) out.row.expect["session"] = planned.session;
    out.body = body(planned, true);
    out.at = planned.at;
    out.after = planned.after;
    out.think = planned.think;
    planned.messages.clear();
    return out;
  }

  const LanePlan& lane_;
  const LaneContext& context_;
  base::Sha256 plan_, bodies_;
};

Result<LaneDraft> write_lane(const LanePlan& lane, const LaneContext& context,
                             PromptBuilder& prompts, const std::function<void(int)>& made) {
  LaneDraft draft = TRY(draft_lane(lane, context.seed));
  if (lane.load == Load::kTrace)
    TRY(write_trace(lane, context, prompts, made, draft));
  else if (lane.prompts == "synthetic")
    TRY(write_synthetic(lane, context, prompts, made, draft));
  else
    TRY(write_dataset(lane, context, draft));
  return draft;
}

}  // namespace

Result<LaneAttempts> build_lane(const LanePlan& lane, const LaneContext& context,
                                PromptBuilder& prompts, const std::function<void(int)>& made) {
  auto draft = write_lane(lane, context, prompts, made);
  if (!draft) return fail(std::move(draft.error().with_context("lane \"" + lane.id + "\"")));
  return Assembler(lane, context).assemble(std::move(*draft));
}

}  // namespace anvil::measure
