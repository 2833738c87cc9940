#include "scripted/request.h"

#include "scripted/tokens.h"

namespace anvil::scripted {

namespace {

const Json kNothing;

const Json& member(const Json& object, const char* key) {
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found != object.end() ? *found : kNothing;
}

// A string, or the texts of a list of parts.
void append_text(const Json& content, std::string& out) {
  if (content.is_string()) {
    out += ' ';
    out += content.get_ref<const std::string&>();
  } else if (content.is_array()) {
    for (const Json& part : content) {
      append_text(member(part, "text"), out);
      append_text(member(part, "content"), out);
    }
  }
}

void append_messages(const Json& messages, std::string& out) {
  if (!messages.is_array()) return append_text(messages, out);
  for (const Json& message : messages) {
    append_text(member(message, "content"), out);
    append_text(member(message, "output"), out);
    for (const char* key : {"reasoning", "reasoning_content"})
      append_text(member(message, key), out);
    const Json& calls = member(message, "tool_calls");
    if (calls.is_array())
      for (const Json& call : calls) {
        append_text(member(member(call, "function"), "name"), out);
        append_text(member(member(call, "function"), "arguments"), out);
      }
  }
}

bool is_true(const Json& value) {
  return value.is_boolean() && value.get<bool>();
}

std::optional<int64_t> count(const Json& value) {
  return value.is_number_integer() ? std::optional(value.get<int64_t>()) : std::nullopt;
}

tl::unexpected<Error> refuse(std::string detail) {
  return fail(Kind::kInvalidInput, Side::kClient, std::move(detail));
}

// A text, a list of token ids, or a list with one of them.
Result<std::vector<int64_t>> completion_prompt(const Json& prompt) {
  if (prompt.is_string()) return prompt_tokens(prompt.get_ref<const std::string&>());
  if (!prompt.is_array()) return refuse("prompt is neither a text nor a list of token ids");
  if (prompt.size() == 1 && !prompt[0].is_number()) return completion_prompt(prompt[0]);
  std::vector<int64_t> ids;
  for (const Json& id : prompt) {
    if (!id.is_number_integer()) return refuse("prompt holds something that is no token id");
    ids.push_back(id.get<int64_t>());
  }
  return ids;
}

std::string first_tool(const Json& tools) {
  if (!tools.is_array() || tools.empty()) return {};
  const Json& function = member(tools[0], "function");
  const Json& name = member(function.is_object() ? function : tools[0], "name");
  return name.is_string() ? name.get<std::string>() : std::string();
}

}  // namespace

std::string_view name(Surface surface) {
  switch (surface) {
    case Surface::kChat:
      return "chat";
    case Surface::kCompletions:
      return "completions";
    case Surface::kResponses:
      return "responses";
    case Surface::kMessages:
      return "messages";
  }
  return "";
}

std::optional<Surface> surface_of_path(std::string_view path) {
  if (path == "/v1/chat/completions") return Surface::kChat;
  if (path == "/v1/completions") return Surface::kCompletions;
  if (path == "/v1/responses") return Surface::kResponses;
  if (path == "/v1/messages") return Surface::kMessages;
  return std::nullopt;
}

std::string render_prompt(Surface surface, const Json& body, const EngineSpec& engine) {
  std::string out;
  for (int64_t i = 1; i < engine.template_tokens; ++i) out += i > 1 ? " <|mark|>" : "<|mark|>";
  if (surface == Surface::kMessages) append_text(member(body, "system"), out);
  if (surface == Surface::kResponses) {
    append_text(member(body, "instructions"), out);
    append_messages(member(body, "input"), out);
  } else {
    append_messages(member(body, "messages"), out);
  }
  const Json& tools = member(body, "tools");
  if (tools.is_array() && !tools.empty()) out += " " + base::canonical(tools);
  return out;
}

std::vector<int64_t> prompt_tokens(std::string_view rendered) {
  std::vector<int64_t> out = tokenize(rendered);
  out.insert(out.begin(), kBosToken);
  return out;
}

Result<Request> read_request(Surface surface, std::string_view text, const EngineSpec& engine) {
  const Result<Json> parsed = base::parse_json(text, "the request body");
  if (!parsed) return refuse(parsed.error().detail);
  const Json& body = *parsed;
  if (!body.is_object()) return refuse("the request body is no JSON object");

  Request request;
  request.surface = surface;
  if (const Json& model = member(body, "model"); model.is_string())
    request.model = model.get<std::string>();
  request.stream = is_true(member(body, "stream"));
  for (const char* key : {"max_completion_tokens", "max_output_tokens", "max_tokens", "n_predict"})
    if (!request.max_tokens) request.max_tokens = count(member(body, key));
  if (request.max_tokens.value_or(1) < 1) {
    if (surface != Surface::kCompletions || *request.max_tokens < 0)
      return refuse("max_tokens must be at least 1");
  }
  request.min_tokens = count(member(body, "min_tokens")).value_or(0);
  request.ignore_eos = is_true(member(body, "ignore_eos"));
  const Json& options = member(body, "stream_options");
  request.usage = is_true(member(options, "include_usage"));
  request.continuous_usage = request.usage && is_true(member(options, "continuous_usage_stats")) &&
                             engine.flavour == Flavour::kVllm;
  request.timings_per_token = is_true(member(body, "timings_per_token"));
  request.token_ids = is_true(member(body, "return_token_ids")) && engine.flavour == Flavour::kVllm;
  request.tool = first_tool(member(body, "tools"));

  if (surface == Surface::kCompletions) {
    request.prompt = TRY(completion_prompt(member(body, "prompt")));
  } else {
    const char* key = surface == Surface::kResponses ? "input" : "messages";
    const Json& messages = member(body, key);
    const bool text_input = surface == Surface::kResponses && messages.is_string();
    if (!text_input && (!messages.is_array() || messages.empty()))
      return refuse(std::string(key) + " is missing or empty");
    request.prompt = prompt_tokens(render_prompt(surface, body, engine));
  }
  return request;
}

}  // namespace anvil::scripted
