#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "scripted/plan.h"
#include "scripted/request.h"
#include "scripted/schedule.h"
#include "scripted/tokens.h"

namespace anvil::scripted {

// Writes server-sent events in the framing that a stream asks for. Appends to a text that the
// caller owns and empties. No allocation once that text has grown. One thread.
class EventWriter {
 public:
  // `due` is what the stamps in the events say; `stamps` whether there are any.
  void start(std::string& out, const Stream& stream, bool stamps, Nanos due);

  // One event: begin(), then the JSON text of an object without its closing brace appended to
  // text(), then end_object(); or any data, then end().
  void begin(std::string_view event_name = {});
  std::string& text() { return *out_; }
  void end_object();
  void end();
  void comment(std::string_view text);

  // Where in the text the write stamps belong; patch() fills them in.
  const std::vector<uint32_t>& stamp_places() const { return places_; }
  static void patch(char* text, uint32_t place, Nanos write);

 private:
  std::string* out_ = nullptr;
  const Stream* stream_ = nullptr;
  bool stamps_ = false;
  Nanos due_ = 0;
  std::vector<uint32_t> places_;
};

// One answer while it is being sent: what has been said so far. Points to what outlives it: the
// schedule's stream and engine, its text, and the request.
struct AnswerState {
  const EngineSpec* engine = nullptr;
  const Stream* stream = nullptr;
  const TokenText* text = nullptr;
  const Request* request = nullptr;
  std::string id;          // what the ids of the surfaces are made of
  std::string model_json;  // the model's name, ready to stand in a JSON string
  int64_t created = 0;     // seconds since the epoch
  int64_t prompt = 0, cached = 0;
  std::string_view finish;
  // Of the plan: what a whole answer holds.
  int64_t reasoning_tokens = 0, content_tokens = 0, tool_events = 0;

  int64_t sent_reasoning = 0, sent_content = 0, sent_tool_events = 0;
  int64_t drafted = 0, accepted = 0;
  Nanos start = 0, first_output = 0, last_output = 0;
  int64_t sequence = 0;                   // Responses: number of the next event
  int block = -1;                         // Responses and Messages: open item, counted from 0
  StepKind block_kind = StepKind::kHead;  // what it holds; kHead: none is open
  bool opened = false;                    // the first event of Responses and Messages was sent

  int64_t sent_tokens() const { return sent_reasoning + sent_content + sent_tool_events; }
};

// Appends the events of one step (several on the surfaces that announce their parts) and counts its
// tokens as sent. Not for kHead and kFault steps of kinds other than kEvent and kGarbage.
void write_step(AnswerState& state, const Step& step, EventWriter& out);

// Counts the tokens of a step as sent: what write_step() does first.
void count_step(AnswerState& state, const Step& step);

// Body of the answer that is not streamed, after all its steps were counted.
std::string whole_body(AnswerState& state);

// {"error":{"message","type","code"}} in the spelling of the surface.
std::string error_body(Surface surface, std::string_view message, std::string_view type, int code);

}  // namespace anvil::scripted
