#include "wire/chat_request.h"

namespace anvil::wire {

namespace {

template <class T>
void put(Json& body, const char* key, const std::optional<T>& value) {
  if (value) body[key] = *value;
}

// The schema with its name, whichever way the request gave it.
Json named_schema(const Json& given) {
  if (given.contains("schema")) {
    Json named = given;
    if (!named.contains("name")) named["name"] = "answer";
    if (!named.contains("strict")) named["strict"] = true;
    return named;
  }
  return {{"name", "answer"}, {"schema", given}, {"strict", true}};
}

bool asks_for_any_json(const Json& schema) {
  return schema.is_object() && schema.size() == 1 && schema.value("type", "") == "json_object";
}

Json response_format(const Json& schema) {
  if (asks_for_any_json(schema)) return schema;
  return {{"type", "json_schema"}, {"json_schema", named_schema(schema)}};
}

Json responses_format(const Json& schema) {
  if (asks_for_any_json(schema)) return schema;
  Json format = named_schema(schema);
  format["type"] = "json_schema";
  return format;
}

std::vector<ChatMessage> messages_of(const GenerationRequest& request) {
  if (!request.messages.empty() || request.prompt.empty()) return request.messages;
  ChatMessage message;
  message.role = "user";
  message.content = request.prompt;
  return {message};
}

Json chat_message(const ChatMessage& message) {
  Json out = {{"role", message.role}, {"content", message.content}};
  if (!message.name.empty()) out["name"] = message.name;
  if (!message.tool_call_id.empty()) out["tool_call_id"] = message.tool_call_id;
  if (!message.reasoning.empty()) out["reasoning_content"] = message.reasoning;
  for (const ToolCall& call : message.tool_calls) {
    out["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return out;
}

// Content as Responses parts: input_text for what goes in, output_text for what the model said.
Json parts(const ChatMessage& message) {
  const char* type = message.role == "assistant" ? "output_text" : "input_text";
  if (message.content.is_string()) {
    return Json::array({{{"type", type}, {"text", message.content}}});
  }
  Json out = Json::array();
  if (!message.content.is_array()) return out;
  for (Json part : message.content) {
    if (part.is_object() && part.value("type", "") == "text") part["type"] = type;
    out.push_back(std::move(part));
  }
  return out;
}

std::string plain_text(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (!content.is_array()) return text;
  for (const Json& part : content) {
    if (part.is_object() && part.contains("text") && part["text"].is_string()) {
      text += part["text"].get<std::string>();
    }
  }
  return text;
}

void add_input_items(Json& input, const ChatMessage& message) {
  if (message.role == "tool") {
    input.push_back({{"type", "function_call_output"},
                     {"call_id", message.tool_call_id},
                     {"output", plain_text(message.content)}});
    return;
  }
  if (!message.reasoning.empty()) {
    input.push_back(
        {{"type", "reasoning"},
         {"summary", Json::array()},
         {"content", Json::array({{{"type", "reasoning_text"}, {"text", message.reasoning}}})}});
  }
  Json content = parts(message);
  if (!content.empty() && plain_text(message.content) != "") {
    input.push_back({{"type", "message"}, {"role", message.role}, {"content", std::move(content)}});
  } else if (message.tool_calls.empty()) {
    input.push_back({{"type", "message"}, {"role", message.role}, {"content", std::move(content)}});
  }
  for (const ToolCall& call : message.tool_calls) {
    input.push_back({{"type", "function_call"},
                     {"call_id", call.id},
                     {"name", call.name},
                     {"arguments", call.arguments}});
  }
}

// {"type":"function","function":{...}} with the inner object lifted to the top.
Json flat(const Json& tool) {
  if (!tool.is_object() || !tool.contains("function") || !tool["function"].is_object()) return tool;
  Json out = tool["function"];
  out["type"] = "function";
  return out;
}

void chat_body(const GenerationRequest& request, Json& body) {
  body["messages"] = Json::array();
  for (const ChatMessage& message : messages_of(request)) {
    body["messages"].push_back(chat_message(message));
  }
  put(body, "max_tokens", request.max_tokens);
  if (!request.tools.is_null()) body["tools"] = request.tools;
  if (!request.tool_choice.is_null()) body["tool_choice"] = request.tool_choice;
  if (!request.json_schema.is_null()) {
    body["response_format"] = response_format(request.json_schema);
  }
  if (!request.effort.empty()) body["reasoning_effort"] = request.effort;
}

void completions_body(const GenerationRequest& request, Json& body) {
  if (request.prompt_tokens.empty()) {
    body["prompt"] = request.prompt;
  } else {
    body["prompt"] = request.prompt_tokens;
  }
  put(body, "max_tokens", request.max_tokens);
  if (!request.json_schema.is_null()) {
    body["response_format"] = response_format(request.json_schema);
  }
}

void responses_body(const GenerationRequest& request, Json& body) {
  body["input"] = Json::array();
  for (const ChatMessage& message : messages_of(request)) add_input_items(body["input"], message);
  put(body, "max_output_tokens", request.max_tokens);
  if (!request.tools.is_null()) {
    body["tools"] = Json::array();
    for (const Json& tool : request.tools) body["tools"].push_back(flat(tool));
  }
  if (!request.tool_choice.is_null()) body["tool_choice"] = flat(request.tool_choice);
  if (!request.json_schema.is_null()) {
    body["text"] = {{"format", responses_format(request.json_schema)}};
  }
  if (!request.effort.empty()) body["reasoning"] = {{"effort", request.effort}};
}

}  // namespace

Json to_json(const GenerationRequest& request) {
  Json body = {{"model", request.model}, {"stream", request.stream}};
  put(body, "temperature", request.temperature);
  put(body, "top_p", request.top_p);
  put(body, "seed", request.seed);
  if (!request.stop.empty()) body["stop"] = request.stop;
  if (request.ignore_eos) body["ignore_eos"] = true;
  switch (request.api) {
    case Api::kChat:
      chat_body(request, body);
      break;
    case Api::kCompletions:
      completions_body(request, body);
      break;
    case Api::kResponses:
      responses_body(request, body);
      break;
  }
  if (request.stream && request.api != Api::kResponses) {
    body["stream_options"] = {{"include_usage", true}};
  }
  if (request.extra.is_object()) body.update(request.extra);
  return body;
}

std::string to_body(const GenerationRequest& request) {
  return base::canonical(to_json(request));
}

}  // namespace anvil::wire
