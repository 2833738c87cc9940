#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/strings.h"
#include "engine/runner.h"
#include "engine/translate.h"

namespace anvil::engine {

namespace {

std::vector<std::string> words(const Json& document, const char* key) {
  return document.value(key, std::vector<std::string>{});
}

// Sets or replaces; the order of first appearance stays.
void set_variable(std::vector<std::pair<std::string, std::string>>& env, const std::string& name,
                  std::string value) {
  const auto found =
      std::find_if(env.begin(), env.end(), [&](const auto& one) { return one.first == name; });
  if (found == env.end()) {
    env.emplace_back(name, std::move(value));
  } else {
    found->second = std::move(value);
  }
}

void add_table(std::vector<std::pair<std::string, std::string>>& env, const Json& table) {
  if (!table.is_object()) return;
  for (const auto& [name, value] : table.items()) set_variable(env, name, argument_text(value));
}

Nanos seconds(double value) {
  return static_cast<Nanos>(std::llround(value * static_cast<double>(kSecond)));
}

// What a client connects to when the engine listens on `host`.
std::string reachable(const std::string& host) {
  if (host == "0.0.0.0" || host.empty()) return "127.0.0.1";
  if (host == "::") return "[::1]";
  return host.find(':') != std::string::npos ? "[" + host + "]" : host;
}

}  // namespace

Json to_json(const LaunchSpec& spec) {
  Json env = Json::object();
  for (const auto& [name, value] : spec.env) env[name] = value;
  Json secrets = Json::object();
  for (const auto& [name, reference] : spec.secret_env) secrets[name] = reference;
  return {{"argv", spec.argv},
          {"env", std::move(env)},
          {"secrets", std::move(secrets)},
          {"host", spec.host},
          {"port", spec.port},
          {"base_url", spec.base_url},
          {"start_ceiling_s", static_cast<double>(spec.start_ceiling) / 1e9},
          {"progress_limit_s", static_cast<double>(spec.progress_limit) / 1e9},
          {"stop_grace_s", static_cast<double>(spec.stop_grace) / 1e9}};
}

Result<LaunchSpec> build_launch(const recipe::Recipe& recipe, const InterfaceTable& table,
                                const LaunchOptions& options) {
  const Json& document = table.document();
  LaunchSpec spec;
  spec.log_path = options.log_path;
  spec.start_ceiling = seconds(recipe.number("launch.start_ceiling_s", 1800));
  spec.progress_limit = seconds(recipe.number("launch.progress_limit_s", 300));
  spec.stop_grace = seconds(recipe.number("launch.stop_grace_s", 20));

  if (recipe.text("launch.runner") == "external") {
    spec.base_url = recipe.text("launch.url");
    if (spec.base_url.empty()) {
      return fail(Error(Kind::kInvalidInput, Side::kClient,
                        "the external runner has no address to talk to",
                        "give launch.url, e.g. \"http://127.0.0.1:18081\"")
                      .with_position(recipe.position("launch.url")));
    }
    return spec;
  }

  spec.host = recipe.text("launch.host");
  if (spec.host.empty()) spec.host = "127.0.0.1";
  spec.port = static_cast<int>(recipe.integer("launch.port"));
  if (spec.port == 0) spec.port = options.port;
  spec.base_url = "http://" + reachable(spec.host) + ":" + std::to_string(spec.port);

  LaunchValues values = declared_launch_values(recipe);
  if (!options.model_path.empty()) {
    values["launch.model_path"] = options.model_path;
    values["launch.model_is_repo"] = options.model_path == recipe.text("model.repo");
    if (recipe.text("speculation.draft.path").empty()) {
      values["launch.draft_path"] = options.model_path;
    }
  }
  if (!options.chat_template.empty()) values["model.chat_template"] = options.chat_template;
  values["launch.host"] = spec.host;
  values["launch.port"] = spec.port;

  const std::vector<Setting> settings = TRY(translate(table, recipe, values));
  std::vector<std::string> program = recipe.list("launch.program");
  if (program.empty()) program = words(document, "program");
  if (program.empty()) {
    return fail(Error(Kind::kInvalidInput, Side::kClient,
                      "interface table \"" + table.name() + "\" names no program to start",
                      "give launch.program, or use launch.runner = \"external\"")
                    .with_position(recipe.position("launch.program")));
  }
  spec.argv = program;
  for (std::string& word : words(document, "fixed")) spec.argv.push_back(std::move(word));
  for (const Setting& setting : settings) {
    spec.argv.insert(spec.argv.end(), setting.args.begin(), setting.args.end());
    for (const auto& [name, value] : setting.env) set_variable(spec.env, name, value);
  }
  for (std::string& word : recipe.list("launch.extra_args")) spec.argv.push_back(std::move(word));
  add_table(spec.env, recipe.at("launch.env"));
  if (!options.platform.empty()) {
    add_table(spec.env, recipe.at("platform." + options.platform + ".env"));
  }
  if (const Json& secrets = recipe.at("launch.secrets"); secrets.is_object()) {
    for (const auto& [name, reference] : secrets.items()) {
      spec.secret_env.emplace_back(name, reference.get<std::string>());
    }
  }
  if (const std::string key = recipe.text("launch.api_key"); !key.empty()) {
    const std::string variable = document.value("api_key_env", "");
    if (variable.empty()) {
      return fail(Error(Kind::kUnsupported, Side::kClient,
                        table.name() + " takes its key only on the command line, where every user "
                                       "of this host can read it",
                        "remove launch.api_key and keep the engine on loopback")
                      .with_position(recipe.position("launch.api_key")));
    }
    spec.secret_env.emplace_back(variable, key);
  }
  if (const auto version = words(document, "version_args"); !version.empty()) {
    spec.version_command = program;
    spec.version_command.insert(spec.version_command.end(), version.begin(), version.end());
  }
  return spec;
}

}  // namespace anvil::engine
