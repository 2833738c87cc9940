#include "engine/tokenizer.h"

#include "base/strings.h"
#include "engine/engine_call.h"

namespace anvil::engine {

namespace {

Error shape_error(const std::string& path, const char* what) {
  return Error(Kind::kProtocol, Side::kUpstream, path + " answers without " + what);
}

// [1, 2] or [{"id": 1, ...}, ...]
Result<std::vector<int64_t>> ids_of(const Json& answer, const std::string& path) {
  const auto list = answer.find("tokens");
  if (!answer.is_object() || list == answer.end() || !list->is_array()) {
    return fail(shape_error(path, "a list of tokens"));
  }
  std::vector<int64_t> ids;
  ids.reserve(list->size());
  for (const Json& one : *list) {
    const Json& id = one.is_object() && one.contains("id") ? one["id"] : one;
    if (!id.is_number_integer()) return fail(shape_error(path, "token ids"));
    ids.push_back(id.get<int64_t>());
  }
  return ids;
}

Result<std::string> text_of(const Json& answer, std::initializer_list<const char*> keys,
                            const std::string& path) {
  for (const char* key : keys) {
    if (!answer.is_object()) break;
    const auto found = answer.find(key);
    if (found != answer.end() && found->is_string()) return found->get<std::string>();
  }
  return fail(shape_error(path, "text"));
}

std::string word(const Json& document, const char* table, const char* key) {
  const auto found = document.find(table);
  return found == document.end() ? "" : found->value(key, "");
}

Error unsupported(const char* what) {
  return Error(Kind::kUnsupported, Side::kEngine, std::string("this engine has no ") + what);
}

}  // namespace

Tokenizer::Tokenizer(const InterfaceTable& table, std::string base_url, std::string served_model,
                     std::string api_key)
    : base_url_(std::move(base_url)),
      served_model_(std::move(served_model)),
      api_key_(std::move(api_key)),
      form_(word(table.document(), "tokenize", "form")),
      tokenize_path_(word(table.document(), "tokenize", "path")),
      detokenize_path_(word(table.document(), "tokenize", "detokenize")),
      render_path_(word(table.document(), "render", "path")) {}

bool Tokenizer::can_render() const {
  return !render_path_.empty();
}

Result<Json> Tokenizer::post(const std::string& path, const Json& body) const {
  return call_json(base_url_, path, api_key_, &body);
}

Result<std::vector<int64_t>> Tokenizer::tokenize(std::string_view text, bool special) const {
  if (tokenize_path_.empty()) return fail(unsupported("tokenizer endpoint"));
  Json body;
  if (form_ == "llama.cpp") {
    body = {{"content", text}, {"add_special", special}, {"parse_special", false}};
  } else {
    body = {{"model", served_model_}, {"prompt", text}, {"add_special_tokens", special}};
  }
  const Json answer = TRY(post(tokenize_path_, body));
  return ids_of(answer, tokenize_path_);
}

Result<int64_t> Tokenizer::count(std::string_view text, bool special) const {
  return static_cast<int64_t>(TRY(tokenize(text, special)).size());
}

Result<std::string> Tokenizer::detokenize(const std::vector<int64_t>& tokens) const {
  if (detokenize_path_.empty()) return fail(unsupported("endpoint from tokens to text"));
  Json body = {{"tokens", tokens}};
  if (form_ != "llama.cpp") body["model"] = served_model_;
  const Json answer = TRY(post(detokenize_path_, body));
  return text_of(answer, {"content", "prompt", "text"}, detokenize_path_);
}

Result<Tokenizer::Rendered> Tokenizer::render(const Json& request) const {
  if (render_path_.empty()) return fail(unsupported("endpoint that renders a chat prompt"));
  Rendered rendered;
  if (form_ == "llama.cpp") {
    const Json answer = TRY(post(render_path_, request));
    rendered.text = TRY(text_of(answer, {"prompt"}, render_path_));
    // As the chat endpoint does it: special tokens in the text count, BOS is put in front.
    const Json body = {{"content", rendered.text}, {"add_special", true}, {"parse_special", true}};
    const Json tokens = TRY(post(tokenize_path_, body));
    rendered.tokens = TRY(ids_of(tokens, tokenize_path_));
    return rendered;
  }
  Json body = {{"model", served_model_}};
  for (const char* key : {"messages", "tools", "chat_template_kwargs", "continue_final_message",
                          "add_generation_prompt", "chat_template"}) {
    if (const auto found = request.find(key); found != request.end()) body[key] = *found;
  }
  // The tokenizer endpoint does not know the effort; the chat endpoint hands it to the template in
  // exactly this way.
  if (const auto effort = request.find("reasoning_effort");
      effort != request.end() && effort->is_string()) {
    Json& arguments = body["chat_template_kwargs"];
    if (!arguments.is_object()) arguments = Json::object();
    if (!arguments.contains("enable_thinking")) {
      arguments["enable_thinking"] = *effort != Json("none");
    }
    arguments["reasoning_effort"] = *effort;
  }
  const Json answer = TRY(post(render_path_, body));
  rendered.tokens = TRY(ids_of(answer, render_path_));
  return rendered;
}

}  // namespace anvil::engine
