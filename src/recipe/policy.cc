#include "recipe/policy.h"

#include <algorithm>

#include "base/hash.h"
#include "base/strings.h"
#include "recipe/fields.h"
#include "recipe/judge.h"
#include "recipe/suite_sense.h"
#include "recipe/toml_document.h"

namespace anvil::recipe {

namespace {

// Members joined by dots, each followed by any number of [*] or [N].
bool is_metric_path(std::string_view path) {
  for (std::string_view part : base::split(path, '.')) {
    const auto bracket = std::min(part.find('['), part.size());
    const std::string_view member = part.substr(0, bracket);
    if (member.empty() || !std::all_of(member.begin(), member.end(), [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || c == '-';
        }))
      return false;
    for (part.remove_prefix(bracket); !part.empty();) {
      const auto close = part.find(']');
      if (!part.starts_with('[') || close == std::string_view::npos) return false;
      const std::string_view index = part.substr(1, close - 1);
      const auto number = base::parse_int(index);
      if (index != "*" && (!number || *number < 0)) return false;
      part.remove_prefix(close + 1);
    }
  }
  return true;
}

bool is_scalar(const Json& value) {
  return value.is_string() || value.is_number() || value.is_boolean();
}

void judge_gate(const Json& gate, const std::string& path, Judge& judge) {
  const std::string metric = text(gate, "metric");
  if (!metric.empty() && !is_metric_path(metric))
    judge.error(path + ".metric", "\"" + metric + "\" is not a path into results.json",
                "write members joined by dots, with [*] or [N] behind lists: "
                "\"lanes[*].ttfo_ms.p50\"");
  const bool starred = metric.find("[*]") != std::string::npos;
  const std::string over = text(gate, "over", "every");
  const std::string op = text(gate, "op");
  if (const auto select = gate.find("select"); select != gate.end() && select->is_object()) {
    if (!starred && !select->empty())
      judge.error(path + ".select", "nothing to select from: the metric has no [*]",
                  "put [*] behind the list, or remove select");
    for (const auto& [key, wanted] : select->items()) {
      const bool list = wanted.is_array() && !wanted.empty() &&
                        std::all_of(wanted.begin(), wanted.end(), is_scalar);
      if (!is_scalar(wanted) && !list)
        judge.error(path_join(path + ".select", key), "found " + wanted.dump(),
                    "wanted a text, number, true or false, or a list of them");
    }
  }
  if (!starred && over != "every" && over != "any" && metric.find('[') == std::string::npos &&
      !metric.empty())
    judge.error(path + ".over", "\"" + over + "\" of a single value: the metric has no [*]",
                "put [*] behind the list, or remove over");
  const auto threshold = gate.find("threshold");
  if (threshold == gate.end() || !is_scalar(*threshold)) return;
  const bool number = threshold->is_number();
  if (!number && !op.empty() && op != "==" && op != "!=")
    judge.error(path + ".threshold", threshold->dump() + " has no order, but op is \"" + op + "\"",
                "use == or !=, or a number");
  if (!number && over != "every" && over != "any")
    judge.error(path + ".threshold",
                threshold->dump() + " is compared with the " + over + " of values",
                "wanted a number");
}

void judge_policy(Judge& judge, const TomlDocument& document) {
  judge.unique("gate", "id");
  judge.each("gate",
             [&](const Json& gate, const std::string& path) { judge_gate(gate, path, judge); });
  const auto gates = document.value.find("gate");
  if (gates == document.value.end())
    judge.error("gate", "no gate: every run would pass", "add at least one [[gate]]");
}

void judge_host(Judge& judge, const TomlDocument&) {
  judge.unique("role", "name");
  judge.unique("role", "gpu");
  judge.each("role", [&](const Json& role, const std::string& path) {
    const std::string gpu = text(role, "gpu");
    if (!gpu.empty() && !gpu.starts_with("GPU-") && !gpu.starts_with("MIG-"))
      judge.error(path + ".gpu",
                  "\"" + gpu +
                      "\" is not a UUID: an index can name another card "
                      "after the next boot",
                  "wanted GPU-..., as nvidia-smi -L prints it");
  });
}

using Judgement = void (*)(Judge&, const TomlDocument&);

// Schema first, then sense; the document stays in `toml` only if both found no error.
void check(Loaded<TomlDocument>& toml, const Schema& schema, Judgement judgement) {
  if (!toml.value) return;
  toml.diagnostics = schema.check(*toml.value);
  if (text(toml.value->value, "schema") == schema.name()) {
    Judge judge(*toml.value, toml.diagnostics);
    judgement(judge, *toml.value);
    sort_by_position(toml.diagnostics);
  }
  if (has_errors(toml.diagnostics)) toml.value.reset();
}

// The document with defaults, without labels; `list` is renamed to `as` and always there.
template <class T>
Loaded<T> finish(Loaded<TomlDocument> toml, const Schema& schema, Judgement judgement,
                 const char* list, const char* as) {
  check(toml, schema, judgement);
  Loaded<T> out;
  out.diagnostics = std::move(toml.diagnostics);
  out.source = std::move(toml.source);
  if (!toml.value) return out;
  T value;
  value.path = toml.value->file;
  value.name = text(toml.value->value, "name");
  value.canonical = schema.with_defaults(toml.value->value);
  settle_lanes(value.canonical, toml.value->value);
  for (const Field& field : schema.fields())
    if (field.label) value.canonical.erase(std::string(field.path));
  Json elements = value.canonical.value(list, Json::array());
  value.canonical.erase(list);
  value.canonical[as] = std::move(elements);
  value.digest = base::sha256(base::canonical(value.canonical));
  out.value = std::move(value);
  return out;
}

Loaded<HostFile> finish_host(Loaded<TomlDocument> toml) {
  check(toml, host_schema(), judge_host);
  Loaded<HostFile> out;
  out.diagnostics = std::move(toml.diagnostics);
  out.source = std::move(toml.source);
  if (!toml.value) return out;
  HostFile host;
  host.path = toml.value->file;
  host.document = std::move(toml.value->value);
  for (const auto& role : host.document.value("role", Json::array()))
    host.roles[text(role, "name")] = Json{{"gpu", text(role, "gpu")}};
  out.value = std::move(host);
  return out;
}

}  // namespace

Loaded<Policy> load_policy(const std::string& path) {
  return finish<Policy>(load_toml(path), policy_schema(), judge_policy, "gate", "gates");
}

Loaded<Policy> parse_policy(std::string_view toml, const std::string& path) {
  return finish<Policy>(parse_toml(toml, path), policy_schema(), judge_policy, "gate", "gates");
}

Loaded<Suite> load_suite(const std::string& path) {
  return finish<Suite>(load_toml(path), suite_schema(), judge_suite, "lane", "lane");
}

Loaded<Suite> parse_suite(std::string_view toml, const std::string& path) {
  return finish<Suite>(parse_toml(toml, path), suite_schema(), judge_suite, "lane", "lane");
}

Loaded<HostFile> load_host(const std::string& path) {
  return finish_host(load_toml(path));
}

Loaded<HostFile> parse_host(std::string_view toml, const std::string& path) {
  return finish_host(parse_toml(toml, path));
}

std::string policy_reference() {
  return reference(policy_schema());
}

std::string suite_reference() {
  return reference(suite_schema());
}

}  // namespace anvil::recipe
