#pragma once

#include <charconv>
#include <string>
#include <string_view>

#include "scripted/answer.h"

namespace anvil::scripted {

// Pieces that the surfaces share; private to the answers.

inline void append_number(std::string& out, int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

// The token counts that usage objects show: the true ones plus what the stream makes wrong.
struct Counts {
  int64_t prompt = 0, completion = 0, cached = 0, reasoning = 0;
};
Counts shown_counts(const AnswerState& state);

// The name that tool call `call` has, ready for JSON, and its id.
std::string tool_name_json(const AnswerState& state);
void append_tool_id(const AnswerState& state, int64_t call, std::string& out);
// Which call and which delta of it a tool event is: delta 0 carries the name, the others pieces.
struct ToolEvent {
  int64_t call = 0;
  int64_t delta = 0;
};
ToolEvent tool_event(const AnswerState& state, int64_t index);
// Arguments of a call in whose events `deltas` were sent, name delta included; JSON-escaped.
std::string tool_arguments_json(const AnswerState& state, int64_t deltas);
std::string tool_piece_json(const AnswerState& state, int64_t delta);

// Reasoning or content tokens of the state's text, JSON-escaped.
void append_tokens(const AnswerState& state, int64_t first, int64_t count, std::string& out);

void write_completion_step(AnswerState& state, const Step& step, EventWriter& out);
void write_responses_step(AnswerState& state, const Step& step, EventWriter& out);
void write_messages_step(AnswerState& state, const Step& step, EventWriter& out);
std::string whole_completion(AnswerState& state);
std::string whole_response(AnswerState& state);
std::string whole_message(AnswerState& state);

}  // namespace anvil::scripted
