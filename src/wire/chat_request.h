#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "wire/answer.h"

namespace anvil::wire {

struct ChatMessage {
  std::string role{};                  // "system", "user", "assistant", "tool"
  Json content = nullptr;              // string, list of parts, or null (assistant with tool calls)
  std::vector<ToolCall> tool_calls{};  // assistant
  std::string tool_call_id{};          // tool: which call this answers
  std::string name{};                  // optional
  std::string reasoning{};  // assistant: passed back where the surface has a place for it
};

// One generation request, independent of the surface. Absent values are not sent.
struct GenerationRequest {
  Api api = Api::kChat;
  std::string model;
  std::vector<ChatMessage> messages;   // chat and Responses
  std::string prompt;                  // completions; with the other surfaces: one user message
  std::vector<int64_t> prompt_tokens;  // completions: token ids instead of text
  std::optional<int64_t> max_tokens;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int64_t> seed;
  std::vector<std::string> stop;
  Json tools;  // null or a list of {"type":"function","function":{name, description, parameters}}
  Json tool_choice;  // null, "auto"/"none"/"required", or {"type":"function","function":{"name"}}
  // null; a JSON schema object; or {"name","schema","strict"} to name it. {"type":"json_object"}
  // asks for any JSON.
  Json json_schema;
  std::string effort;  // reasoning effort; "" sends none
  bool ignore_eos = false;
  bool stream = true;  // chat and completions also ask for usage in the stream
  Json extra;          // null or an object, merged at top level last: it wins
};

// The request body. Equal requests give equal bytes: keys are sorted.
std::string to_body(const GenerationRequest& request);
// The same as a document.
Json to_json(const GenerationRequest& request);

}  // namespace anvil::wire
