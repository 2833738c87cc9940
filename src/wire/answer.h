#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace anvil::wire {

// The request surfaces that engines offer.
enum class Api { kChat, kCompletions, kResponses };
std::string_view name(Api api);  // "chat", "completions", "responses"
std::string_view path(Api api);  // "/v1/chat/completions", ...
std::optional<Api> api_from_name(std::string_view name);

// Token counts as the engine reports them; absent where it does not say.
struct Usage {
  std::optional<int64_t> prompt;
  std::optional<int64_t> completion;
  std::optional<int64_t> cached;     // prompt tokens served from the prefix cache
  std::optional<int64_t> reasoning;  // part of completion
  std::optional<int64_t> total;      // as the engine reports it, to be held against the sum

  bool empty() const { return !prompt && !completion && !cached && !reasoning && !total; }
  bool operator==(const Usage&) const = default;
};

// llama.cpp's `timings` object: milliseconds and counts on the engine's clock.
struct EngineTimings {
  std::optional<int64_t> cache_n, prompt_n, predicted_n, draft_n, draft_n_accepted;
  std::optional<double> prompt_ms, predicted_ms;
};

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text, exactly the concatenated pieces

  bool operator==(const ToolCall&) const = default;
};

// An error that the engine reported inside a 200 answer, or as an error body.
struct ReportedError {
  std::string message;
  std::string type;
  std::string code;
};

// Everything an answer says, whichever surface and spelling it came in.
struct Answer {
  std::string id;
  std::string model;
  std::string system_fingerprint;
  std::string reasoning;
  std::string content;
  std::string refusal;
  std::vector<ToolCall> tool_calls;
  std::string finish;  // "stop", "length", "tool_calls", ... ; Responses: "completed", "incomplete"
  Usage usage;
  std::optional<EngineTimings> timings;
  std::optional<ReportedError> error;
};

// What one stream event added. `output()` is what TTFO waits for, `visible()` what TTFV waits for.
struct Delta {
  uint32_t reasoning_bytes = 0;
  uint32_t content_bytes = 0;
  uint32_t tool_bytes = 0;  // tool name and argument bytes
  std::optional<int64_t>
      completion_tokens;  // cumulative count, where the engine sends one with every chunk
  bool usage = false;     // the event carried a usage object
  bool finish = false;    // the event carried a finish reason
  bool error = false;     // the event carried an error
  bool done = false;      // the terminal marker: [DONE], response.completed

  bool output() const { return reasoning_bytes + content_bytes + tool_bytes > 0; }
  bool visible() const { return content_bytes + tool_bytes > 0; }
};

}  // namespace anvil::wire
