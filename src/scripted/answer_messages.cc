#include <algorithm>

#include "scripted/answer_parts.h"

namespace anvil::scripted {

namespace {

std::string_view stop_reason(const AnswerState& state) {
  if (state.finish == "length") return "max_tokens";
  return state.finish == "tool_calls" ? "tool_use" : "end_turn";
}

void begin_event(EventWriter& writer, std::string_view type) {
  writer.begin(type);
  writer.text().append("{\"type\":\"").append(type).append("\"");
}

// Cached tokens are counted apart from input_tokens on this surface.
void append_usage(const AnswerState& state, int64_t output, std::string& out) {
  const Counts counts = shown_counts(state);
  out += "\"usage\":{\"input_tokens\":";
  append_number(out, std::max<int64_t>(0, counts.prompt - counts.cached));
  if (state.engine->report_cached) {
    out += ",\"cache_read_input_tokens\":";
    append_number(out, counts.cached);
  }
  out += ",\"output_tokens\":";
  append_number(out, output);
  out += '}';
}

void append_message_head(const AnswerState& state, std::string& out) {
  out.append("{\"id\":\"msg_").append(state.id);
  out.append("\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"");
  out.append(state.model_json).append("\"");
}

void append_tool_head(const AnswerState& state, int64_t call, std::string& out) {
  out += "{\"type\":\"tool_use\",\"id\":\"";
  append_tool_id(state, call, out);
  out.append("\",\"name\":\"").append(tool_name_json(state)).append("\",\"input\":");
}

void open_answer(AnswerState& state, EventWriter& writer) {
  if (state.opened) return;
  state.opened = true;
  begin_event(writer, "message_start");
  std::string& out = writer.text();
  out += ",\"message\":";
  append_message_head(state, out);
  out += ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,";
  append_usage(state, 0, out);
  out += '}';
  writer.end_object();
}

void close_block(AnswerState& state, EventWriter& writer) {
  if (state.block_kind == StepKind::kHead) return;
  state.block_kind = StepKind::kHead;
  begin_event(writer, "content_block_stop");
  writer.text() += ",\"index\":";
  append_number(writer.text(), state.block);
  writer.end_object();
}

void open_block(AnswerState& state, const Step& step, EventWriter& writer) {
  ++state.block;
  state.block_kind = step.kind;
  begin_event(writer, "content_block_start");
  std::string& out = writer.text();
  out += ",\"index\":";
  append_number(out, state.block);
  out += ",\"content_block\":";
  if (step.kind == StepKind::kTool) {
    append_tool_head(state, tool_event(state, step.index).call, out);
    out += "{}}";
  } else {
    out += step.kind == StepKind::kReasoning
               ? "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}"
               : "{\"type\":\"text\",\"text\":\"\"}";
  }
  writer.end_object();
}

void write_delta(AnswerState& state, const Step& step, EventWriter& writer) {
  if (step.kind == StepKind::kTool && tool_event(state, step.index).delta == 0) return;
  begin_event(writer, "content_block_delta");
  std::string& out = writer.text();
  out += ",\"index\":";
  append_number(out, state.block);
  if (step.kind == StepKind::kTool) {
    out += ",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"";
    out += tool_piece_json(state, tool_event(state, step.index).delta);
  } else {
    out += step.kind == StepKind::kReasoning
               ? ",\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\""
               : ",\"delta\":{\"type\":\"text_delta\",\"text\":\"";
    append_tokens(state, step.index, step.tokens, out);
  }
  out += "\"}";
  writer.end_object();
}

void write_end(AnswerState& state, EventWriter& writer) {
  close_block(state, writer);
  begin_event(writer, "message_delta");
  std::string& out = writer.text();
  out.append(",\"delta\":{\"stop_reason\":\"").append(stop_reason(state));
  out += "\",\"stop_sequence\":null}";
  if (state.stream->usage != UsageMode::kNone) {
    out += ',';
    append_usage(state, shown_counts(state).completion, out);
  }
  writer.end_object();
}

}  // namespace

// Usage stands in message_delta, beside the stop reason.
void write_messages_step(AnswerState& state, const Step& step, EventWriter& writer) {
  open_answer(state, writer);
  switch (step.kind) {
    case StepKind::kReasoning:
    case StepKind::kContent:
    case StepKind::kTool: {
      const bool next_call =
          step.kind == StepKind::kTool && tool_event(state, step.index).delta == 0;
      if (state.block_kind != step.kind || next_call) {
        close_block(state, writer);
        open_block(state, step, writer);
      }
      write_delta(state, step, writer);
      if (step.finish) write_end(state, writer);
      return;
    }
    case StepKind::kFinish:
      return write_end(state, writer);
    case StepKind::kDone:
      begin_event(writer, "message_stop");
      return writer.end_object();
    default:
      return;
  }
}

std::string whole_message(AnswerState& state) {
  std::string out;
  append_message_head(state, out);
  out += ",\"content\":[";
  const auto separate = [&] {
    if (out.back() != '[') out += ',';
  };
  if (state.reasoning_tokens > 0) {
    out += "{\"type\":\"thinking\",\"signature\":\"\",\"thinking\":\"";
    append_tokens(state, 0, state.reasoning_tokens, out);
    out += "\"}";
  }
  if (state.content_tokens > 0) {
    separate();
    out += "{\"type\":\"text\",\"text\":\"";
    append_tokens(state, 0, state.content_tokens, out);
    out += "\"}";
  }
  const int64_t deltas = 1 + state.stream->tool_pieces;
  for (int64_t at = 0; at < state.tool_events; at += deltas) {
    separate();
    append_tool_head(state, at / deltas, out);
    // Verbatim where the arguments are an object; anything else is shown as a text.
    const auto arguments = base::parse_json(state.stream->tool_arguments, "arguments");
    out += base::canonical(arguments ? *arguments : Json(state.stream->tool_arguments)) + "}";
  }
  out.append("],\"stop_reason\":\"").append(stop_reason(state));
  out += "\",\"stop_sequence\":null";
  if (state.stream->usage != UsageMode::kNone) {
    out += ',';
    append_usage(state, shown_counts(state).completion, out);
  }
  return out + "}";
}

}  // namespace anvil::scripted
