#include "scripted/routes.h"

#include "base/version.h"

namespace anvil::scripted {

namespace {

std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 429:
      return "Too Many Requests";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Scripted";
  }
}

Reply json(const Json& document) {
  return {.body = base::canonical(document)};
}

Reply bad(std::string_view message, int status = 400) {
  return error_reply(Surface::kChat, status, message, "invalid_request_error");
}

Json model_card(const Engine& engine, const std::string& id) {
  const EngineSpec& spec = engine.schedule().engine;
  Json card = {{"id", id},
               {"object", "model"},
               {"created", engine.created()},
               {"owned_by", "anvil-scripted-engine"},
               {"max_model_len", spec.context_tokens}};
  if (spec.flavour == Flavour::kLlamaCpp)
    card["meta"] = {{"n_ctx_train", spec.context_tokens}, {"n_ctx", spec.context_tokens}};
  return card;
}

Reply models(const Engine& engine) {
  Json list = Json::array();
  const Schedule& schedule = engine.schedule();
  if (schedule.choose == Choose::kModel)
    for (const Stream& stream : schedule.streams) list.push_back(model_card(engine, stream.name));
  else
    list.push_back(model_card(engine, schedule.engine.model));
  return json({{"object", "list"}, {"data", std::move(list)}});
}

Reply health(const Engine& engine) {
  const bool llama = engine.schedule().engine.flavour == Flavour::kLlamaCpp;
  if (engine.healthy()) return llama ? json({{"status", "ok"}}) : Reply{.type = "text/plain"};
  return error_reply(Surface::kChat, 503, "Loading model", "unavailable_error");
}

Reply properties(const Engine& engine) {
  const EngineSpec& spec = engine.schedule().engine;
  return json({{"build_info", "anvil-scripted-engine " + base::version()},
               {"model_path", spec.model},
               {"model_alias", spec.model},
               {"chat_template", ""},
               {"total_slots", spec.slots > 0 ? spec.slots : 1},
               {"default_generation_settings", {{"n_ctx", spec.context_tokens}}}});
}

// vLLM: {"prompt"} or {"messages"}; llama.cpp: {"content"}.
Reply tokenize_reply(const Engine& engine, std::string_view text) {
  const auto body = base::parse_json(text, "the request body");
  if (!body) return bad(body.error().detail);
  if (!body->is_object()) return bad("the request body is no JSON object");
  const EngineSpec& spec = engine.schedule().engine;
  const bool llama = spec.flavour == Flavour::kLlamaCpp;
  const auto special = body->find(llama ? "add_special" : "add_special_tokens");
  const bool add_bos =
      special != body->end() && special->is_boolean() ? special->get<bool>() : !llama;
  std::vector<int64_t> tokens;
  const auto plain = body->find(llama ? "content" : "prompt");
  if (plain != body->end() && plain->is_string()) {
    const std::string& words = plain->get_ref<const std::string&>();
    tokens = add_bos ? prompt_tokens(words) : tokenize(words);
  } else if (!llama && body->contains("messages")) {
    tokens = prompt_tokens(render_prompt(Surface::kChat, *body, spec));
  } else {
    return bad(llama ? "content is missing" : "prompt and messages are missing");
  }
  tokens.insert(tokens.end(), static_cast<size_t>(spec.tokenizer_surplus), kBosToken + 1);
  if (llama) return json({{"tokens", tokens}});
  return json({{"count", tokens.size()},
               {"max_model_len", spec.context_tokens},
               {"tokens", tokens},
               {"token_strs", nullptr}});
}

Reply count_reply(const Engine& engine, std::string_view text) {
  const auto request = read_request(Surface::kMessages, text, engine.schedule().engine);
  if (!request)
    return error_reply(Surface::kMessages, 400, request.error().detail, "invalid_request_error");
  return json({{"input_tokens", request->prompt.size()}});
}

Reply template_reply(const Engine& engine, std::string_view text) {
  const auto body = base::parse_json(text, "the request body");
  if (!body) return bad(body.error().detail);
  return json({{"prompt", render_prompt(Surface::kChat, *body, engine.schedule().engine)}});
}

}  // namespace

Reply error_reply(Surface surface, int status, std::string_view message, std::string_view type) {
  return {.status = status, .body = error_body(surface, message, type, status)};
}

Reply route(Engine& engine, std::string_view method, std::string_view path, std::string_view body) {
  const bool llama = engine.schedule().engine.flavour == Flavour::kLlamaCpp;
  const bool post = method == "POST";
  const auto refuse = [&] {
    return bad("Method Not Allowed: " + std::string(method) + " " + std::string(path), 405);
  };
  if (path == "/tokenize" || path == "/v1/messages/count_tokens" ||
      (llama && path == "/apply-template") || (!llama && path == "/reset_prefix_cache")) {
    if (!post) return refuse();
    if (path == "/tokenize") return tokenize_reply(engine, body);
    if (path == "/apply-template") return template_reply(engine, body);
    if (path == "/reset_prefix_cache") {
      engine.clear_cache();
      return {};
    }
    return count_reply(engine, body);
  }
  if (path == "/v1/models" || path == "/health" || path == "/metrics" ||
      (llama && path == "/props") || (!llama && path == "/version")) {
    if (method != "GET") return refuse();
    if (path == "/v1/models") return models(engine);
    if (path == "/health") return health(engine);
    if (path == "/props") return properties(engine);
    if (path == "/version") return json({{"version", "anvil-scripted-engine " + base::version()}});
    return {.body = engine.metrics(), .type = "text/plain; version=0.0.4; charset=utf-8"};
  }
  if (surface_of_path(path)) return refuse();
  return bad("Not Found: " + std::string(path), 404);
}

void append_reply_head(int status, std::string_view request_id, std::string& out) {
  out.append("HTTP/1.1 ").append(std::to_string(status)).append(" ").append(reason(status));
  out.append("\r\nServer: anvil-scripted-engine\r\nX-Request-Id: ").append(request_id);
  out.append("\r\n");
}

std::string reply_text(const Reply& reply, std::string_view request_id, bool keep_alive) {
  std::string out;
  out.reserve(256 + reply.body.size());
  append_reply_head(reply.status, request_id, out);
  out.append("Content-Type: ").append(reply.type).append("\r\n").append(reply.more_fields);
  out.append("Content-Length: ").append(std::to_string(reply.body.size()));
  out.append(keep_alive ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n").append(reply.body);
  return out;
}

}  // namespace anvil::scripted
