#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "scripted/request.h"
#include "scripted/schedule.h"
#include "stats/random.h"

namespace anvil::scripted {

enum class StepKind : uint8_t {
  kHead,       // the response head
  kPing,       // a comment
  kRole,       // the first delta, without output
  kReasoning,  // output events
  kContent,
  kTool,
  kFinish,  // the finish reason in an event of its own
  kUsage,
  kDone,   // the terminal marker
  kFault,  // what the stream's Fault says
  kWhole,  // an answer that is not streamed; never in a Plan
};
std::string_view name(StepKind kind);
constexpr bool is_output(StepKind kind) {
  return kind == StepKind::kReasoning || kind == StepKind::kContent || kind == StepKind::kTool;
}

// One thing to send. Ledger kinds have the same names.
struct Step {
  Nanos at = 0;  // from the start
  StepKind kind = StepKind::kPing;
  bool finish = false;   // carries the finish reason as well
  uint8_t drafted = 0;   // speculation: tokens drafted for it
  uint8_t accepted = 0;  // and accepted among its tokens
  uint32_t tokens = 0;   // completion tokens in it
  uint32_t index = 0;    // of its first token within its class; tool events: which one
};

// One answer, laid out before its first byte. Steps in rising order of `at`.
struct Plan {
  std::vector<Step> steps;
  std::string_view finish;  // finish reason in the words of chat; lives as long as the stream
  int64_t reasoning_tokens = 0, content_tokens = 0, tool_events = 0;
  int64_t completion_tokens() const { return reasoning_tokens + content_tokens + tool_events; }
};

// Lays out the answer of `stream` to `request`. `text_tokens`: length of the stream's own text, 0
// if it has none; `cached`: prompt tokens that need no prefill; `fault`: whether the stream's fault
// meets this request. Deterministic in the state of `random`.
Plan make_plan(const EngineSpec& engine, const Stream& stream, const Request& request,
               int64_t text_tokens, int64_t cached, bool fault, stats::Random& random);

}  // namespace anvil::scripted
