#include <algorithm>

#include "scripted/answer_parts.h"

namespace anvil::scripted {

namespace {

bool is_chat(const AnswerState& state) {
  return state.request->surface == Surface::kChat;
}

void append_usage(const AnswerState& state, std::string& out) {
  const Counts counts = shown_counts(state);
  out += "\"usage\":{\"prompt_tokens\":";
  append_number(out, counts.prompt);
  out += ",\"completion_tokens\":";
  append_number(out, counts.completion);
  out += ",\"total_tokens\":";
  append_number(out, counts.prompt + counts.completion);
  if (state.engine->report_cached) {
    out += ",\"prompt_tokens_details\":{\"cached_tokens\":";
    append_number(out, counts.cached);
    out += '}';
  }
  out += ",\"completion_tokens_details\":{\"reasoning_tokens\":";
  append_number(out, counts.reasoning);
  out += "}}";
}

// Milliseconds with three digits behind the point.
void append_ms(std::string& out, Nanos value) {
  const int64_t micros = std::max<Nanos>(0, value) / 1000;
  append_number(out, micros / 1000);
  const int64_t rest = micros % 1000;
  out += rest < 10 ? ".00" : rest < 100 ? ".0" : ".";
  append_number(out, rest);
}

// llama.cpp's own counts and times.
void append_timings(const AnswerState& state, std::string& out) {
  const Counts counts = shown_counts(state);
  const Nanos prompt = state.first_output > 0 ? state.first_output - state.start : 0;
  out += ",\"timings\":{";
  if (state.engine->report_cached) {
    out += "\"cache_n\":";
    append_number(out, counts.cached);
    out += ',';
  }
  out += "\"prompt_n\":";
  append_number(out, std::max<int64_t>(0, counts.prompt - counts.cached));
  out += ",\"prompt_ms\":";
  append_ms(out, prompt);
  out += ",\"predicted_n\":";
  append_number(out, counts.completion);
  out += ",\"predicted_ms\":";
  append_ms(out, state.last_output - state.first_output);
  if (state.drafted > 0) {
    out += ",\"draft_n\":";
    append_number(out, state.drafted);
    out += ",\"draft_n_accepted\":";
    append_number(out, state.accepted);
  }
  out += '}';
}

void append_head(const AnswerState& state, std::string_view object, std::string& out) {
  out += is_chat(state) ? "{\"id\":\"chatcmpl-" : "{\"id\":\"cmpl-";
  out.append(state.id).append("\",\"object\":\"").append(object).append("\",\"created\":");
  append_number(out, state.created);
  out.append(",\"model\":\"").append(state.model_json);
  out += "\",\"system_fingerprint\":\"scripted\"";
}

void append_delta(const AnswerState& state, const Step& step, std::string& out) {
  switch (step.kind) {
    case StepKind::kRole:
      out += "\"role\":\"assistant\",\"content\":";
      out += state.stream->role == Role::kNull ? "null" : "\"\"";
      return;
    case StepKind::kReasoning:
    case StepKind::kContent: {
      const bool reasoning = step.kind == StepKind::kReasoning;
      const char* key = !reasoning                                    ? "\"content\":\""
                        : state.engine->flavour == Flavour::kLlamaCpp ? "\"reasoning_content\":\""
                                                                      : "\"reasoning\":\"";
      out += key;
      append_tokens(state, step.index, step.tokens, out);
      out += '"';
      return;
    }
    case StepKind::kTool: {
      const ToolEvent event = tool_event(state, step.index);
      out += "\"tool_calls\":[{\"index\":";
      append_number(out, event.call);
      if (event.delta == 0) {
        out += ",\"id\":\"";
        append_tool_id(state, event.call, out);
        out.append("\",\"type\":\"function\",\"function\":{\"name\":\"");
        out.append(tool_name_json(state)).append("\",\"arguments\":\"\"}}]");
      } else {
        out.append(",\"function\":{\"arguments\":\"");
        out.append(tool_piece_json(state, event.delta)).append("\"}}]");
      }
      return;
    }
    default:
      return;
  }
}

void append_token_ids(const AnswerState& state, const Step& step, std::string& out) {
  out += ",\"token_ids\":[";
  for (uint32_t i = 0; i < step.tokens; ++i) {
    if (i > 0) out += ',';
    append_number(out, state.text->id(step.index + i));
  }
  out += ']';
}

// In completions reasoning is text like any other.
void append_choice(const AnswerState& state, const Step& step, std::string& out) {
  out += "{\"index\":0,";
  if (is_chat(state)) {
    out += "\"delta\":{";
    append_delta(state, step, out);
    out += '}';
  } else {
    out += "\"text\":\"";
    if (step.kind == StepKind::kReasoning || step.kind == StepKind::kContent)
      append_tokens(state, step.index, step.tokens, out);
    out += '"';
  }
  if (state.request->token_ids && is_output(step.kind)) append_token_ids(state, step, out);
  const bool finish = step.finish || step.kind == StepKind::kFinish;
  out += ",\"logprobs\":null,\"finish_reason\":";
  if (finish)
    out.append("\"").append(state.finish).append("\"}");
  else
    out += "null}";
}

}  // namespace

void write_completion_step(AnswerState& state, const Step& step, EventWriter& writer) {
  writer.begin();
  std::string& out = writer.text();
  if (step.kind == StepKind::kDone) {
    out += "[DONE]";
    return writer.end();
  }
  append_head(state, is_chat(state) ? "chat.completion.chunk" : "text_completion", out);
  out += ",\"choices\":[";
  if (step.kind != StepKind::kUsage || state.stream->usage_empty_text) {
    Step shown = step;
    if (step.kind == StepKind::kUsage) {
      shown.kind = StepKind::kContent;
      shown.tokens = 0;
    }
    append_choice(state, shown, out);
  }
  out += ']';
  const UsageMode mode = state.stream->usage;
  const bool continuous = mode == UsageMode::kContinuous ||
                          (mode == UsageMode::kAsked && state.request->continuous_usage);
  if (step.kind == StepKind::kUsage || continuous) {
    out += ',';
    append_usage(state, out);
  }
  const bool last = step.kind == StepKind::kUsage || step.kind == StepKind::kFinish || step.finish;
  if (state.engine->flavour == Flavour::kLlamaCpp && mode != UsageMode::kNone &&
      (last || state.request->timings_per_token))
    append_timings(state, out);
  writer.end_object();
}

std::string whole_completion(AnswerState& state) {
  std::string out;
  append_head(state, is_chat(state) ? "chat.completion" : "text_completion", out);
  out += ",\"choices\":[{\"index\":0,";
  if (is_chat(state)) {
    out += "\"message\":{\"role\":\"assistant\",\"content\":";
    if (state.content_tokens > 0 || state.tool_events == 0) {
      out += '"';
      append_tokens(state, 0, state.content_tokens, out);
      out += '"';
    } else {
      out += "null";
    }
    if (state.reasoning_tokens > 0) {
      const bool llama = state.engine->flavour == Flavour::kLlamaCpp;
      out += llama ? ",\"reasoning_content\":\"" : ",\"reasoning\":\"";
      append_tokens(state, 0, state.reasoning_tokens, out);
      out += '"';
    }
    const int64_t deltas = 1 + state.stream->tool_pieces;
    for (int64_t at = 0; at < state.tool_events; at += deltas) {
      out += at == 0 ? ",\"tool_calls\":[{\"id\":\"" : ",{\"id\":\"";
      append_tool_id(state, at / deltas, out);
      out.append("\",\"type\":\"function\",\"function\":{\"name\":\"")
          .append(tool_name_json(state))
          .append("\",\"arguments\":\"")
          .append(tool_arguments_json(state, std::min(deltas, state.tool_events - at)))
          .append("\"}}");
    }
    if (state.tool_events > 0) out += ']';
    out += '}';
  } else {
    out += "\"text\":\"";
    append_tokens(state, 0, state.reasoning_tokens, out);
    append_tokens(state, 0, state.content_tokens, out);
    out += '"';
  }
  out.append(",\"logprobs\":null,\"finish_reason\":\"").append(state.finish).append("\"}]");
  if (state.stream->usage != UsageMode::kNone) {
    out += ',';
    append_usage(state, out);
    if (state.engine->flavour == Flavour::kLlamaCpp) append_timings(state, out);
  }
  return out + "}";
}

}  // namespace anvil::scripted
