#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "scripted/schedule.h"

namespace anvil::scripted {

enum class Surface { kChat, kCompletions, kResponses, kMessages };
std::string_view name(Surface surface);
std::optional<Surface> surface_of_path(std::string_view path);

// What a request for an answer says, as far as it matters here.
struct Request {
  Surface surface = Surface::kChat;
  std::string model;  // "" if it names none
  bool stream = false;
  std::vector<int64_t> prompt;  // token ids, template and BOS included
  std::optional<int64_t> max_tokens;
  int64_t min_tokens = 0;
  bool ignore_eos = false;
  bool usage = false;              // stream_options.include_usage
  bool continuous_usage = false;   // stream_options.continuous_usage_stats
  bool timings_per_token = false;  // llama.cpp
  bool token_ids = false;          // return_token_ids (vLLM)
  std::string tool;                // name of the first tool on offer
};

// Errors are kInvalidInput and say what the body lacks.
Result<Request> read_request(Surface surface, std::string_view body, const EngineSpec& engine);

// A conversation as its template renders it, without BOS: `template_tokens` - 1 marks, then the
// words of all messages. `body` is a chat, Responses or Messages request.
std::string render_prompt(Surface surface, const Json& body, const EngineSpec& engine);
// The same as tokens, BOS first.
std::vector<int64_t> prompt_tokens(std::string_view rendered);

}  // namespace anvil::scripted
