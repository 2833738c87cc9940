#include "engine/detect.h"

#include <algorithm>

#include "net/http_call.h"

namespace anvil::engine {

namespace {
struct Owner {
  std::string_view owned_by, engine, interface;
};
constexpr Owner kOwners[] = {{"vllm", "vllm", "vllm-0.32"},
                             {"llamacpp", "llama.cpp", "llama.cpp"},
                             {"sglang", "sglang", "sglang"},
                             {"anvil-scripted-engine", "external", "scripted"}};
}  // namespace

Detected detect_from_models(const Json& document) {
  Detected found{"openai", "external", {}};
  if (!document.is_object() || !document.contains("data") || !document["data"].is_array())
    return found;
  for (const Json& model : document["data"]) {
    if (!model.is_object() || !model.contains("id") || !model["id"].is_string()) continue;
    found.models.push_back(model["id"].get<std::string>());
    const Json owner = model.value("owned_by", Json(nullptr));
    for (const Owner& known : kOwners)
      if (owner.is_string() && owner.get<std::string>() == known.owned_by) {
        found.engine = known.engine;
        found.interface = known.interface;
      }
  }
  return found;
}

Result<Detected> detect_engine(const std::string& base_url, const std::string& api_key) {
  const net::Url url = TRY(net::parse_url(base_url));
  net::HttpCall call;
  call.path = "/v1/models";
  call.api_key = api_key;
  const auto reply = net::http_call(url, call);
  if (!reply) {
    Error error = reply.error();
    if (error.hint.empty())
      error.hint = "is the engine running, and is the address right (scheme, host, port, no /v1)?";
    return fail(std::move(error.with_context("asking " + base_url + "/v1/models")));
  }
  if (reply->status == 401 || reply->status == 403)
    return fail(Kind::kPermission, Side::kUpstream,
                base_url + " refuses the key (HTTP " + std::to_string(reply->status) + ")",
                api_key.empty() ? "give one by reference: --api-key env:NAME or file:PATH"
                                : "check the key that --api-key refers to");
  if (reply->status != 200) return Detected{"openai", "external", {}};
  return detect_from_models(Json::parse(reply->body, nullptr, false));
}

}  // namespace anvil::engine
