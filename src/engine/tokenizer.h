#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/interface_table.h"

namespace anvil::engine {

// The tokenizer of a running engine, through its own endpoint: the only tokenizer that is right by
// definition. Every call is one blocking request; kUnsupported where the engine line has no such
// endpoint. Immutable; calls from several threads do not disturb one another.
class Tokenizer {
 public:
  Tokenizer(const InterfaceTable& table, std::string base_url, std::string served_model,
            std::string api_key);

  bool can_tokenize() const { return !tokenize_path_.empty(); }
  bool can_render() const;

  // Token ids of plain text. `special` adds what the engine puts in front of a completion prompt
  // (BOS).
  Result<std::vector<int64_t>> tokenize(std::string_view text, bool special) const;
  Result<int64_t> count(std::string_view text, bool special) const;
  Result<std::string> detokenize(const std::vector<int64_t>& tokens) const;

  // A chat request as the model will see it. `request` is the body of a chat completion (messages,
  // tools, reasoning_effort, chat_template_kwargs, ...); its sampling fields are ignored.
  struct Rendered {
    std::string text;             // empty where the engine shows only tokens
    std::vector<int64_t> tokens;  // with everything the chat endpoint adds
  };
  Result<Rendered> render(const Json& request) const;

 private:
  Result<Json> post(const std::string& path, const Json& body) const;

  std::string base_url_, served_model_, api_key_;
  std::string form_;  // "llama.cpp", "vllm", "sglang"
  std::string tokenize_path_, detokenize_path_, render_path_;
};

}  // namespace anvil::engine
