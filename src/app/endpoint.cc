#include "app/endpoint.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "base/strings.h"
#include "engine/interface_table.h"

namespace anvil::app {

namespace {
// A TOML basic string.
std::string toml_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned char>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

Result<std::string> choose_model(const std::string& wanted, const engine::Detected& found,
                                 const std::string& url) {
  std::string list;
  for (const auto& model : found.models) list += (list.empty() ? "" : ", ") + model;
  if (wanted.empty()) {
    if (found.models.size() == 1) return found.models.front();
    return fail(Kind::kUsage, Side::kClient,
                found.models.empty() ? url + " does not list its models"
                                     : url + " serves several models: " + list,
                "name one with --model");
  }
  if (found.models.empty() ||
      std::find(found.models.begin(), found.models.end(), wanted) != found.models.end())
    return wanted;
  const auto near = base::did_you_mean(wanted, found.models);
  return fail(Kind::kNotFound, Side::kClient, url + " does not serve \"" + wanted + "\"",
              near ? "did you mean " + *near + "?" : "it serves " + list);
}
}  // namespace

Result<std::string> endpoint_recipe(const EndpointOptions& options) {
  std::string key;
  if (!options.api_key.empty()) key = TRY(recipe::resolve_secret(options.api_key));
  std::string url = options.url;
  while (url.ends_with('/')) url.pop_back();
  if (url.ends_with("/v1")) url.resize(url.size() - 3);
  const engine::Detected found = TRY(engine::detect_engine(url, key));
  const std::string model = TRY(choose_model(options.model, found, url));
  const bool automatic = options.interface.empty() || options.interface == "auto";
  std::string engine = found.engine;
  if (!automatic) {
    const auto table = TRY(engine::InterfaceTable::load(options.interface));
    engine = table.document().value("engine", std::string("external"));
  }
  std::string toml = "schema = \"anvil/recipe/v1\"\nname = \"endpoint\"\nrole = \"control\"\n";
  toml += "notes = \"An endpoint that somebody else runs; nothing about it is pinned.\"\n\n";
  toml += "[model]\nserved_name = " + toml_string(model) + "\n\n";
  toml += "[engine]\nkind = " + toml_string(engine) +
          "\ninterface = " + toml_string(automatic ? found.interface : options.interface) + "\n\n";
  toml += "[launch]\nrunner = \"external\"\nurl = " + toml_string(url) + "\n";
  if (!options.api_key.empty()) toml += "api_key = " + toml_string(options.api_key) + "\n";
  return toml;
}

void add_endpoint_options(CLI::App& command, EndpointOptions& options) {
  command
      .add_option("--url", options.url,
                  "Base address: http://HOST:PORT, https://HOST, unix:PATH (without /v1)")
      ->required();
  command.add_option("--model", options.model, "Model id; default: the only one it serves");
  command.add_option("--api-key", options.api_key, "Key by reference: env:NAME or file:PATH");
  command.add_option("--engine", options.interface,
                     "Interface table: vllm-0.32, llama.cpp, sglang, openai; default: asked");
}

}  // namespace anvil::app
