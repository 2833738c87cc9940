#include "scripted/answer.h"

#include <algorithm>
#include <cstring>

#include "base/json.h"
#include "scripted/answer_parts.h"

namespace anvil::scripted {

namespace {
constexpr size_t kStampWidth = 19;  // digits of the largest stamp
}

void EventWriter::start(std::string& out, const Stream& stream, bool stamps, Nanos due) {
  out_ = &out;
  stream_ = &stream;
  stamps_ = stamps;
  due_ = due;
  places_.clear();
}

void EventWriter::begin(std::string_view event_name) {
  if (!event_name.empty()) {
    out_->append("event: ").append(event_name).append(stream_->line_end);
  }
  out_->append(stream_->data_space ? "data: " : "data:");
}

void EventWriter::end_object() {
  if (stamps_) {
    out_->append(",\"anvil\":{\"due_ns\":");
    append_number(*out_, due_);
    out_->append(",\"write_ns\":");
    places_.push_back(static_cast<uint32_t>(out_->size()));
    out_->append(kStampWidth - 1, ' ').append("0}");
  }
  out_->append("}");
  end();
}

void EventWriter::end() {
  out_->append(stream_->line_end).append(stream_->line_end);
}

void EventWriter::comment(std::string_view text) {
  out_->append(": ").append(text).append(stream_->line_end).append(stream_->line_end);
}

// Blanks in front of a number are white space of JSON: the place keeps its width.
void EventWriter::patch(char* text, uint32_t place, Nanos write) {
  char digits[kStampWidth];
  const auto end = std::to_chars(digits, digits + sizeof digits, write).ptr;
  const auto count = static_cast<size_t>(end - digits);
  std::memset(text + place, ' ', kStampWidth - count);
  std::memcpy(text + place + kStampWidth - count, digits, count);
}

Counts shown_counts(const AnswerState& state) {
  return {std::max<int64_t>(0, state.prompt + state.stream->usage_prompt_off),
          std::max<int64_t>(0, state.sent_tokens() + state.stream->usage_completion_off),
          state.cached, state.sent_reasoning};
}

std::string tool_name_json(const AnswerState& state) {
  const std::string& offered = state.request->tool;
  return json_escaped(offered.empty() ? state.stream->tool_name : offered);
}

void append_tool_id(const AnswerState& state, int64_t call, std::string& out) {
  out.append("call_").append(state.id).append("_");
  append_number(out, call);
}

ToolEvent tool_event(const AnswerState& state, int64_t index) {
  const int64_t deltas = 1 + state.stream->tool_pieces;
  return {index / deltas, index % deltas};
}

std::string tool_piece_json(const AnswerState& state, int64_t delta) {
  return json_escaped(piece_of(state.stream->tool_arguments, state.stream->tool_pieces, delta - 1));
}

std::string tool_arguments_json(const AnswerState& state, int64_t deltas) {
  std::string out;
  for (int64_t delta = 1; delta < deltas; ++delta) out += tool_piece_json(state, delta);
  return out;
}

void append_tokens(const AnswerState& state, int64_t first, int64_t count, std::string& out) {
  state.text->append(first, count, out);
}

void count_step(AnswerState& state, const Step& step) {
  if (step.kind == StepKind::kReasoning) state.sent_reasoning += step.tokens;
  if (step.kind == StepKind::kContent) state.sent_content += step.tokens;
  if (step.kind == StepKind::kTool) state.sent_tool_events += step.tokens;
  state.drafted += step.drafted;
  state.accepted += step.accepted;
}

void write_step(AnswerState& state, const Step& step, EventWriter& out) {
  count_step(state, step);
  if (step.kind == StepKind::kPing) return out.comment("ping");
  if (step.kind == StepKind::kFault && state.stream->fault.kind == FaultKind::kGarbage) {
    out.begin();
    out.text() += "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"torn";
    return out.end();
  }
  if (step.kind == StepKind::kFault) {
    const Fault& fault = state.stream->fault;
    const bool named = state.request->surface == Surface::kResponses ||
                       state.request->surface == Surface::kMessages;
    out.begin(named ? "error" : "");
    std::string body = error_body(state.request->surface, fault.message, fault.type, fault.status);
    body.pop_back();
    out.text() += body;
    return out.end_object();
  }
  switch (state.request->surface) {
    case Surface::kChat:
    case Surface::kCompletions:
      return write_completion_step(state, step, out);
    case Surface::kResponses:
      return write_responses_step(state, step, out);
    case Surface::kMessages:
      return write_messages_step(state, step, out);
  }
}

std::string whole_body(AnswerState& state) {
  switch (state.request->surface) {
    case Surface::kChat:
    case Surface::kCompletions:
      return whole_completion(state);
    case Surface::kResponses:
      return whole_response(state);
    case Surface::kMessages:
      return whole_message(state);
  }
  return {};
}

std::string error_body(Surface surface, std::string_view message, std::string_view type, int code) {
  const Json error = {{"message", message}, {"type", type}, {"code", code}};
  if (surface == Surface::kMessages) return base::canonical({{"type", "error"}, {"error", error}});
  if (surface == Surface::kResponses)
    return base::canonical(
        {{"type", "error"}, {"error", error}, {"message", message}, {"code", code}});
  return base::canonical({{"error", error}});
}

}  // namespace anvil::scripted
