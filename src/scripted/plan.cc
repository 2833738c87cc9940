#include "scripted/plan.h"

#include <algorithm>
#include <cmath>

namespace anvil::scripted {

namespace {

// A comment every millisecond of an hour would be of no use to anybody.
constexpr int64_t kMostPings = 10000;

// Lengths of the three classes after max_tokens, min_tokens and ignore_eos, and whether they cut.
bool set_lengths(const EngineSpec& engine, const Stream& stream, const Request& request,
                 int64_t text_tokens, Plan& plan) {
  const bool tools = request.surface != Surface::kCompletions;
  plan.reasoning_tokens = stream.reasoning_tokens;
  plan.content_tokens = stream.text ? text_tokens : stream.content_tokens;
  plan.tool_events = tools ? stream.tool_calls * (1 + stream.tool_pieces) : 0;

  const int64_t room =
      std::max<int64_t>(0, engine.context_tokens - static_cast<int64_t>(request.prompt.size()));
  const int64_t asked = stream.honours_max_tokens ? request.max_tokens.value_or(room) : room;
  const int64_t limit = std::min(asked, room);
  int64_t wanted = request.min_tokens;
  if (request.ignore_eos && stream.honours_ignore_eos && request.max_tokens) wanted = limit;
  plan.content_tokens += std::max<int64_t>(0, std::min(wanted, limit) - plan.completion_tokens());

  int64_t surplus = std::max<int64_t>(0, plan.completion_tokens() - limit);
  const bool cut = surplus > 0 || (wanted == limit && request.ignore_eos);
  for (int64_t* part : {&plan.tool_events, &plan.content_tokens, &plan.reasoning_tokens}) {
    const int64_t taken = std::min(surplus, *part);
    *part -= taken;
    surplus -= taken;
  }
  return cut;
}

// How many drafted tokens one step accepts: position i is accepted with its marginal share, given
// that all before it were.
int64_t draw_accepted(const EngineSpec& engine, stats::Random& random) {
  double before = 1;
  int64_t accepted = 0;
  for (const double share : engine.acceptance) {
    if (before <= 0 || random.uniform() >= share / before) break;
    before = share;
    ++accepted;
  }
  return accepted;
}

class Layout {
 public:
  Layout(const EngineSpec& engine, const Stream& stream, stats::Random& random, Plan& plan)
      : engine_(engine), stream_(stream), random_(random), plan_(plan) {}

  // When output event `number` is due; called once for each, in order.
  Nanos due(int64_t number, Nanos prefill) {
    const auto listed = static_cast<int64_t>(stream_.times.size());
    if (number < listed)
      previous_ = stream_.times[static_cast<size_t>(number)];
    else
      previous_ = number == 0 ? stream_.first_at : previous_ + gap(number);
    return previous_ + prefill;
  }

  // The next output event at `position` among all tokens.
  Step output(int64_t number, int64_t position) {
    const int64_t visible = plan_.reasoning_tokens + plan_.content_tokens;
    Step step;
    if (position >= visible) {
      step.kind = StepKind::kTool;
      step.tokens = 1;
      step.index = static_cast<uint32_t>(position - visible);
      return step;
    }
    const bool reasoning = position < plan_.reasoning_tokens;
    step.kind = reasoning ? StepKind::kReasoning : StepKind::kContent;
    step.index = static_cast<uint32_t>(reasoning ? position : position - plan_.reasoning_tokens);
    const int64_t rest = (reasoning ? plan_.reasoning_tokens : visible) - position;
    int64_t tokens = 1;
    if (engine_.draft_tokens == 0) {
      const auto& sizes = stream_.chunk_tokens;
      tokens = sizes[std::min(static_cast<size_t>(number), sizes.size() - 1)];
    } else if (number > 0) {
      tokens += draw_accepted(engine_, random_);
    }
    step.tokens = static_cast<uint32_t>(std::min(tokens, rest));
    if (engine_.draft_tokens > 0 && number > 0) {
      step.drafted = static_cast<uint8_t>(engine_.draft_tokens);
      step.accepted = static_cast<uint8_t>(step.tokens - 1);
    }
    return step;
  }

 private:
  Nanos gap(int64_t number) {
    switch (stream_.gaps) {
      case Gaps::kConstant:
        return stream_.gap;
      case Gaps::kGamma: {
        const double mean = static_cast<double>(stream_.gap);
        return std::llround(random_.gamma(stream_.gap_shape, mean / stream_.gap_shape));
      }
      case Gaps::kBurst:
        return number % stream_.burst_events == 0 ? stream_.gap * stream_.burst_events : 0;
    }
    return 0;
  }

  const EngineSpec& engine_;
  const Stream& stream_;
  stats::Random& random_;
  Plan& plan_;
  Nanos previous_ = 0;
};

void add_pings(const Stream& stream, Nanos first_output, std::vector<Step>& steps) {
  if (stream.ping <= 0) return;
  Nanos at = stream.ping;
  for (int64_t i = 0; i < kMostPings && at < first_output; ++i, at += stream.ping)
    if (at >= stream.headers_at) steps.push_back({.at = at, .kind = StepKind::kPing});
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.at < b.at; });
}

// The steps of a fault at `at`; true if nothing comes behind it.
bool add_fault(const Fault& fault, Nanos at, std::vector<Step>& steps) {
  steps.push_back({.at = at, .kind = StepKind::kFault});
  if (fault.kind == FaultKind::kEvent && fault.done)
    steps.push_back({.at = at, .kind = StepKind::kDone});
  return fault.kind != FaultKind::kGarbage;
}

}  // namespace

std::string_view name(StepKind kind) {
  switch (kind) {
    case StepKind::kHead:
      return "head";
    case StepKind::kPing:
      return "ping";
    case StepKind::kRole:
      return "role";
    case StepKind::kReasoning:
      return "reasoning";
    case StepKind::kContent:
      return "content";
    case StepKind::kTool:
      return "tool";
    case StepKind::kFinish:
      return "finish";
    case StepKind::kUsage:
      return "usage";
    case StepKind::kDone:
      return "done";
    case StepKind::kFault:
      return "fault";
    case StepKind::kWhole:
      return "whole";
  }
  return "";
}

Plan make_plan(const EngineSpec& engine, const Stream& stream, const Request& request,
               int64_t text_tokens, int64_t cached, bool meets_fault, stats::Random& random) {
  Plan plan;
  const bool cut = set_lengths(engine, stream, request, text_tokens, plan);
  plan.finish = stream.finish;
  if (plan.finish == "auto")
    plan.finish = cut ? "length" : plan.tool_events > 0 ? "tool_calls" : "stop";

  const Fault& fault = stream.fault;
  std::vector<Step>& steps = plan.steps;
  if (meets_fault && fault.kind == FaultKind::kStatus) {
    steps.push_back({.at = stream.headers_at, .kind = StepKind::kFault});
    return plan;
  }
  Nanos prefill = 0;
  if (engine.prefill_tok_s > 0) {
    const auto computed = static_cast<double>(static_cast<int64_t>(request.prompt.size()) - cached);
    prefill = std::llround(std::max(0.0, computed) / engine.prefill_tok_s * 1e9);
  }
  steps.push_back({.at = stream.headers_at, .kind = StepKind::kHead});
  if (stream.role != Role::kNone) steps.push_back({.at = stream.role_at, .kind = StepKind::kRole});

  Layout layout(engine, stream, random, plan);
  Nanos at = layout.due(0, prefill);
  add_pings(stream, at, steps);
  const int64_t total = plan.completion_tokens();
  int64_t number = 0;
  for (int64_t position = 0; position < total; ++number) {
    if (number > 0) at = layout.due(number, prefill);
    if (meets_fault && number == fault.after_events && add_fault(fault, at, steps)) return plan;
    Step step = layout.output(number, position);
    step.at = at;
    position += step.tokens;
    steps.push_back(step);
  }
  if (number > 0 && !stream.finish_own)
    steps.back().finish = true;
  else
    steps.push_back({.at = at + stream.finish_after, .kind = StepKind::kFinish});
  // The other surfaces count in their last events, asked or not.
  const bool own_event =
      request.surface == Surface::kChat || request.surface == Surface::kCompletions;
  const bool usage =
      own_event && (stream.usage == UsageMode::kFinal || stream.usage == UsageMode::kContinuous ||
                    (stream.usage == UsageMode::kAsked && request.usage));
  if (usage) steps.push_back({.at = at + stream.usage_after, .kind = StepKind::kUsage});
  const Nanos end = at + stream.done_after;
  if (meets_fault && fault.after_events >= number && add_fault(fault, end, steps)) return plan;
  steps.push_back({.at = end, .kind = StepKind::kDone});
  return plan;
}

}  // namespace anvil::scripted
