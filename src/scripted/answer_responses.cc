#include <algorithm>

#include "scripted/answer_parts.h"

namespace anvil::scripted {

namespace {

// Events of the Responses surface: every one is named, typed and numbered.
void begin_event(AnswerState& state, EventWriter& writer, std::string_view type) {
  writer.begin(type);
  std::string& out = writer.text();
  out.append("{\"type\":\"").append(type).append("\",\"sequence_number\":");
  append_number(out, state.sequence++);
}

void append_item_id(const AnswerState& state, std::string& out) {
  out.append("item_").append(state.id).append("_");
  append_number(out, state.block);
}

// "item_id", "output_index" and, for parts, "content_index".
void append_place(const AnswerState& state, std::string& out) {
  out += ",\"item_id\":\"";
  append_item_id(state, out);
  out += "\",\"output_index\":";
  append_number(out, state.block);
  if (state.block_kind != StepKind::kTool) out += ",\"content_index\":0";
}

// One output item with what was sent of it; `call` and `deltas` of a tool call.
void append_item(const AnswerState& state, StepKind kind, bool complete, int64_t call,
                 int64_t deltas, std::string& out) {
  const char* status = complete ? "completed" : "in_progress";
  out += "{\"id\":\"";
  append_item_id(state, out);
  out.append("\",\"status\":\"").append(status);
  if (kind == StepKind::kTool) {
    out += "\",\"type\":\"function_call\",\"call_id\":\"";
    append_tool_id(state, call, out);
    out.append("\",\"name\":\"").append(tool_name_json(state)).append("\",\"arguments\":\"");
    if (complete) out += tool_arguments_json(state, deltas);
    out += "\"}";
    return;
  }
  const bool reasoning = kind == StepKind::kReasoning;
  out += reasoning ? "\",\"type\":\"reasoning\",\"summary\":[],\"content\":["
                   : "\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[";
  if (complete) {
    out += reasoning ? "{\"type\":\"reasoning_text\",\"text\":\""
                     : "{\"type\":\"output_text\",\"annotations\":[],\"text\":\"";
    append_tokens(state, 0, reasoning ? state.sent_reasoning : state.sent_content, out);
    out += "\"}";
  }
  out += "]}";
}

void append_usage(const AnswerState& state, std::string& out) {
  const Counts counts = shown_counts(state);
  out += ",\"usage\":{\"input_tokens\":";
  append_number(out, counts.prompt);
  if (state.engine->report_cached) {
    out += ",\"input_tokens_details\":{\"cached_tokens\":";
    append_number(out, counts.cached);
    out += '}';
  }
  out += ",\"output_tokens\":";
  append_number(out, counts.completion);
  out += ",\"output_tokens_details\":{\"reasoning_tokens\":";
  append_number(out, counts.reasoning);
  out += "},\"total_tokens\":";
  append_number(out, counts.prompt + counts.completion);
  out += '}';
}

// The items that were sent, whole.
void append_output(AnswerState& state, std::string& out) {
  out += ",\"output\":[";
  const int open_block = state.block;
  state.block = 0;
  const auto item = [&](StepKind kind, int64_t call, int64_t deltas) {
    if (state.block > 0) out += ',';
    append_item(state, kind, true, call, deltas, out);
    ++state.block;
  };
  if (state.sent_reasoning > 0) item(StepKind::kReasoning, 0, 0);
  if (state.sent_content > 0) item(StepKind::kContent, 0, 0);
  const int64_t deltas = 1 + state.stream->tool_pieces;
  for (int64_t at = 0; at < state.sent_tool_events; at += deltas)
    item(StepKind::kTool, at / deltas, std::min(deltas, state.sent_tool_events - at));
  state.block = open_block;
  out += ']';
}

void append_response(AnswerState& state, std::string_view status, bool complete, std::string& out) {
  out.append("{\"id\":\"resp_").append(state.id).append("\",\"object\":\"response\",\"status\":\"");
  out.append(status).append("\",\"created_at\":");
  append_number(out, state.created);
  out.append(",\"model\":\"").append(state.model_json).append("\"");
  if (status == "incomplete") out += ",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}";
  if (!complete) {
    out += ",\"output\":[],\"usage\":null}";
    return;
  }
  append_output(state, out);
  if (state.stream->usage == UsageMode::kNone)
    out += ",\"usage\":null";
  else
    append_usage(state, out);
  out += '}';
}

void open_answer(AnswerState& state, EventWriter& writer) {
  if (state.opened) return;
  state.opened = true;
  for (const char* type : {"response.created", "response.in_progress"}) {
    begin_event(state, writer, type);
    writer.text() += ",\"response\":";
    append_response(state, "in_progress", false, writer.text());
    writer.end_object();
  }
}

void close_block(AnswerState& state, EventWriter& writer) {
  const StepKind kind = state.block_kind;
  if (kind == StepKind::kHead) return;
  std::string& out = writer.text();
  const int64_t per_call = 1 + state.stream->tool_pieces;
  const int64_t call = (state.sent_tool_events - 1) / per_call;
  const int64_t deltas = state.sent_tool_events - call * per_call;
  if (kind == StepKind::kTool) {
    begin_event(state, writer, "response.function_call_arguments.done");
    append_place(state, out);
    out.append(",\"arguments\":\"").append(tool_arguments_json(state, deltas)).append("\"");
    writer.end_object();
  } else {
    const bool reasoning = kind == StepKind::kReasoning;
    begin_event(state, writer,
                reasoning ? "response.reasoning_text.done" : "response.output_text.done");
    append_place(state, out);
    out += ",\"text\":\"";
    append_tokens(state, 0, reasoning ? state.sent_reasoning : state.sent_content, out);
    out += '"';
    writer.end_object();
  }
  begin_event(state, writer, "response.output_item.done");
  out += ",\"output_index\":";
  append_number(out, state.block);
  out += ",\"item\":";
  append_item(state, kind, true, call, deltas, out);
  writer.end_object();
  state.block_kind = StepKind::kHead;
}

void open_block(AnswerState& state, const Step& step, EventWriter& writer) {
  ++state.block;
  state.block_kind = step.kind;
  std::string& out = writer.text();
  begin_event(state, writer, "response.output_item.added");
  out += ",\"output_index\":";
  append_number(out, state.block);
  out += ",\"item\":";
  append_item(state, step.kind, false, tool_event(state, step.index).call, 0, out);
  writer.end_object();
}

void write_delta(AnswerState& state, const Step& step, EventWriter& writer) {
  std::string& out = writer.text();
  if (step.kind == StepKind::kTool) {
    const ToolEvent event = tool_event(state, step.index);
    if (event.delta == 0) return;
    begin_event(state, writer, "response.function_call_arguments.delta");
    append_place(state, out);
    out.append(",\"delta\":\"").append(tool_piece_json(state, event.delta)).append("\"");
  } else {
    begin_event(state, writer,
                step.kind == StepKind::kReasoning ? "response.reasoning_text.delta"
                                                  : "response.output_text.delta");
    append_place(state, out);
    out += ",\"delta\":\"";
    append_tokens(state, step.index, step.tokens, out);
    out += '"';
  }
  writer.end_object();
}

}  // namespace

// Usage stands in the terminal event: a usage step says nothing of its own, and neither does a
// finish reason beyond closing what is open.
void write_responses_step(AnswerState& state, const Step& step, EventWriter& writer) {
  open_answer(state, writer);
  switch (step.kind) {
    case StepKind::kReasoning:
    case StepKind::kContent:
    case StepKind::kTool: {
      const bool next_call =
          step.kind == StepKind::kTool && tool_event(state, step.index).delta == 0;
      if (state.block_kind != step.kind || next_call) {
        // What is closed does not hold the tokens of this step.
        AnswerState before = state;
        if (step.kind == StepKind::kTool) before.sent_tool_events -= step.tokens;
        close_block(before, writer);
        state.sequence = before.sequence;
        state.block_kind = before.block_kind;
        open_block(state, step, writer);
      }
      write_delta(state, step, writer);
      if (step.finish) close_block(state, writer);
      return;
    }
    case StepKind::kFinish:
      return close_block(state, writer);
    case StepKind::kDone: {
      close_block(state, writer);
      const bool cut = state.finish == "length";
      begin_event(state, writer, cut ? "response.incomplete" : "response.completed");
      writer.text() += ",\"response\":";
      append_response(state, cut ? "incomplete" : "completed", true, writer.text());
      return writer.end_object();
    }
    default:
      return;
  }
}

std::string whole_response(AnswerState& state) {
  std::string out;
  append_response(state, state.finish == "length" ? "incomplete" : "completed", true, out);
  return out;
}

}  // namespace anvil::scripted
