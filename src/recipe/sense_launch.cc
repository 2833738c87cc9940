#include <array>

#include "base/strings.h"
#include "recipe/fields.h"
#include "recipe/forms.h"
#include "recipe/sense.h"
#include "recipe/toml_document.h"

namespace anvil::recipe {

namespace {

constexpr int64_t kFirstFreePort = 1024;

bool breaks_a_line(std::string_view text) {
  return text.find_first_of(std::string_view("\n\r\0", 3)) != std::string_view::npos;
}

void check_env(const Recipe& recipe, std::string_view table, Findings& findings) {
  for (const auto& [name, value] : recipe.map(table)) {
    const std::string path = path_join(table, name);
    if (!is_variable_name(name))
      findings.error(path, "not a name that an environment can hold",
                     "use letters, digits and _, no digit first");
    if (breaks_a_line(value))
      findings.error(path, "the value contains a line break or NUL", "write it on one line");
    if (value.starts_with("env:") || (value.starts_with("file:") && names_a_secret(name)))
      findings.error(path, "a reference to a secret stands where plain values stand",
                     "move it to [launch.secrets]");
    else if (names_a_secret(name) || looks_like_a_secret(value))
      findings.error(path,
                     "looks like a secret, and its value would be published with the evidence",
                     "move it to [launch.secrets] as " + name + " = \"env:" + name + "\"");
  }
}

// "--api-key", "--hf-token=..."; "api_key" after the dashes are gone.
std::string flag_as_variable(std::string_view argument) {
  if (!argument.starts_with("--")) return {};
  argument = argument.substr(2, argument.find('=') - 2);
  return base::replace_all(std::string(argument), "-", "_");
}

void check_extra_args(const Recipe& recipe, Findings& findings) {
  const auto arguments = recipe.list("launch.extra_args");
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string path = "launch.extra_args[" + std::to_string(i) + "]";
    if (breaks_a_line(arguments[i]))
      findings.error(path, "contains a line break or NUL", "one argument is one line");
    if (names_a_secret(flag_as_variable(arguments[i])) || looks_like_a_secret(arguments[i]))
      findings.error(path, "looks like a secret, and would be published with the evidence",
                     "use launch.api_key or [launch.secrets]");
  }
}

void check_container(const Recipe& recipe, Findings& findings) {
  const auto volumes = recipe.list("launch.volumes");
  for (size_t i = 0; i < volumes.size(); ++i) {
    const auto parts = base::split(volumes[i], ':');
    const bool mode = parts.size() == 3 && (parts[2] == "ro" || parts[2] == "rw");
    if ((parts.size() != 2 && !mode) || parts[0].empty() || !parts[1].starts_with('/'))
      findings.error("launch.volumes[" + std::to_string(i) + "]",
                     "\"" + volumes[i] + "\" is not a mount",
                     "wanted source:/absolute/target, with :ro or :rw if need be");
  }
  if (const Json& limits = recipe.at("launch.ulimits"); limits.is_object()) {
    for (const auto& [name, limit] : limits.items()) {
      bool good = limit.is_number_integer() && limit.get<int64_t>() >= -1;
      if (limit.is_string()) {
        const auto parts = base::split(limit.get_ref<const std::string&>(), ':');
        good = parts.size() == 2;
        for (const auto part : parts) {
          const auto number = base::parse_int(part);
          good = good && number && *number >= -1;
        }
      }
      if (!good)
        findings.error(path_join("launch.ulimits", name), "found " + limit.dump(),
                       "wanted an integer (-1 = unlimited) or \"soft:hard\"");
    }
  }
  if (recipe.flag("launch.privileged"))
    findings.warning("launch.privileged", "the container gets all rights of the host",
                     "name the device or capability that it needs instead");
}

// A default that is written out says nothing.
bool says_default(const Recipe& recipe, std::string_view key) {
  const Field* field = recipe_schema().find(key);
  return field && recipe.at(key) == field->fallback;
}

void check_runner(const Recipe& recipe, Findings& findings) {
  const std::string runner = recipe.text("launch.runner");
  if (runner.empty()) return;
  const auto forbid = [&](std::span<const std::string_view> keys, const std::string& why) {
    for (const std::string_view key : keys)
      if (recipe.has(key) && !says_default(recipe, key))
        findings.error(key, why, "remove it, or choose another launch.runner");
  };
  static constexpr std::array<std::string_view, 6> kContainerOnly = {
      "launch.entrypoint", "launch.volumes", "launch.shm_gib",
      "launch.ipc",        "launch.ulimits", "launch.privileged"};
  static constexpr std::array<std::string_view, 4> kStartOnly = {
      "launch.program", "launch.env", "launch.secrets", "launch.extra_args"};
  if (runner != "docker")
    forbid(kContainerOnly, "only a container has this, and the runner is \"" + runner + "\"");
  if (runner == "docker" && !recipe.has("engine.image"))
    findings.error("engine.image", "missing, and the runner is \"docker\"",
                   "add image = \"name@sha256:...\" to [engine]");
  if (runner == "process" && recipe.has("engine.image"))
    findings.error("engine.image", "a container image, but the runner is \"process\"",
                   "remove it, or use runner = \"docker\"");
  if (runner == "external") {
    if (!recipe.has("launch.url"))
      findings.error("launch.url", "missing, and the runner is \"external\"",
                     "add url = \"http://127.0.0.1:PORT\" to [launch]");
    forbid(kStartOnly, "an external server is not started by us, so this would have no effect");
    if (recipe.integer("launch.port") != 0)
      findings.error("launch.port", "the port of an external server stands in launch.url",
                     "remove it");
  } else {
    if (recipe.has("launch.url"))
      findings.error("launch.url", "only an external server has an address of its own",
                     "remove it, or use runner = \"external\"");
    if (recipe.text("engine.kind") == "external")
      findings.error("engine.kind",
                     "\"external\" cannot be started by the runner \"" + runner + "\"",
                     "use runner = \"external\", or name the engine");
  }
}

}  // namespace

void check_launch(const Recipe& recipe, Findings& findings) {
  check_runner(recipe, findings);
  check_container(recipe, findings);
  check_env(recipe, "launch.env", findings);
  check_env(recipe, "platform.wsl2.env", findings);
  check_extra_args(recipe, findings);

  const int64_t port = recipe.integer("launch.port");
  if (port > 0 && port < kFirstFreePort)
    findings.warning("launch.port", std::to_string(port) + " needs special rights",
                     "use a port from 1024 up, or 0 for a free one");
  const std::string host = recipe.text("launch.host");
  if (!host.empty() && !is_loopback(host))
    findings.warning("launch.host",
                     "\"" + host + "\" makes the engine reachable for other machines",
                     "keep 127.0.0.1 unless that is meant; the engine's own access control is not "
                     "relied upon");
  const std::string url_text = recipe.text("launch.url");
  const std::string_view target = url_host(url_text);
  if (!target.empty() && !is_loopback(target) && url_text.starts_with("http://"))
    findings.warning("launch.url", "prompts and keys travel unencrypted to " + std::string(target),
                     "use https, or a tunnel to 127.0.0.1");

  const auto own = recipe.map("launch.env");
  const auto overlay = recipe.map("platform.wsl2.env");
  for (const auto& [name, value] : overlay)
    if (own.contains(name))
      findings.error(path_join("platform.wsl2.env", name), "also set in [launch.env]",
                     "keep it in one place: here if only the platform needs it");
  if (const Json& secrets = recipe.at("launch.secrets"); secrets.is_object()) {
    for (const auto& [name, reference] : secrets.items()) {
      if (!is_variable_name(name))
        findings.error(path_join("launch.secrets", name), "not a name that an environment can hold",
                       "use letters, digits and _, no digit first");
      if (own.contains(name) || overlay.contains(name))
        findings.error(path_join("launch.secrets", name), "also set as a plain value",
                       "keep the reference only");
    }
  }
}

}  // namespace anvil::recipe
