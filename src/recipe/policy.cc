#include "recipe/policy.h"

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "base/strings.h"
#include "recipe/fields.h"
#include "recipe/toml_document.h"

namespace anvil::recipe {

namespace {

// Diagnostics about one document; a field that the schema refuses is not judged a second time.
class Judge {
 public:
  Judge(const TomlDocument& document, std::vector<Diagnostic>& diagnostics)
      : document_(document), diagnostics_(diagnostics) {
    for (const auto& diagnostic : diagnostics) refused_.insert(diagnostic.at.key);
  }

  void error(const std::string& key, std::string problem, std::string remedy) {
    if (refused_.contains(key)) return;
    diagnostics_.push_back({Diagnostic::Severity::kError, document_.position(key),
                            std::move(problem), std::move(remedy)});
  }
  void warning(const std::string& key, std::string problem, std::string remedy) {
    diagnostics_.push_back({Diagnostic::Severity::kWarning, document_.position(key),
                            std::move(problem), std::move(remedy)});
  }

  // Calls f(element, path) for every table of an array of tables.
  template <class F>
  void each(const std::string& array, F f) const {
    const auto found = document_.value.find(array);
    if (found == document_.value.end() || !found->is_array()) return;
    for (size_t i = 0; i < found->size(); ++i)
      if ((*found)[i].is_object()) f((*found)[i], array + "[" + std::to_string(i) + "]");
  }

  // Every table of the array has another value of `key`.
  void unique(const std::string& array, const std::string& key) {
    std::set<std::string> seen;
    each(array, [&](const Json& element, const std::string& path) {
      const auto found = element.find(key);
      if (found == element.end() || !found->is_string()) return;
      if (!seen.insert(found->get<std::string>()).second)
        error(path + "." + key, found->dump() + " stands twice", "give each its own " + key);
    });
  }

 private:
  const TomlDocument& document_;
  std::vector<Diagnostic>& diagnostics_;
  std::set<std::string> refused_;
};

std::string text(const Json& table, const char* key, const char* fallback = "") {
  const auto found = table.find(key);
  return found != table.end() && found->is_string() ? found->get<std::string>() : fallback;
}

int64_t integer(const Json& table, const char* key, int64_t fallback) {
  const auto found = table.find(key);
  return found != table.end() && found->is_number_integer() ? found->get<int64_t>() : fallback;
}

bool flag(const Json& table, const char* key, bool fallback) {
  const auto found = table.find(key);
  return found != table.end() && found->is_boolean() ? found->get<bool>() : fallback;
}

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

void judge_suite(Judge& judge, const TomlDocument& document) {
  judge.unique("lane", "id");
  judge.each("lane", [&](const Json& lane, const std::string& path) {
    const int64_t concurrency = integer(lane, "concurrency", 1);
    const int64_t requests = integer(lane, "requests", 12);
    if (requests < concurrency)
      judge.error(path + ".requests",
                  std::to_string(requests) + " requests never reach a concurrency of " +
                      std::to_string(concurrency),
                  "wanted at least as many requests as concurrency");
    if (!flag(lane, "stream", true) && flag(lane, "fixed_output", true) &&
        integer(lane, "output_tokens", 128) == 1)
      judge.warning(path + ".stream", "an answer of one token without a stream shows no speed",
                    "raise output_tokens, or stream");
  });
  for (const char* list : {"include", "efforts"}) {
    std::set<std::string> seen;
    const Json* values = find_value(document.value, std::string("checks.") + list);
    if (!values || !values->is_array()) continue;
    for (size_t i = 0; i < values->size(); ++i)
      if ((*values)[i].is_string() && !seen.insert((*values)[i].get<std::string>()).second)
        judge.error(std::string("checks.") + list + "[" + std::to_string(i) + "]",
                    (*values)[i].dump() + " stands twice", "remove one of the two");
  }
  if (const Json* targets = find_value(document.value, "ladder.targets");
      targets && targets->is_array()) {
    for (size_t i = 1; i < targets->size(); ++i)
      if ((*targets)[i].is_number() && (*targets)[i - 1].is_number() &&
          (*targets)[i] <= (*targets)[i - 1])
        judge.error("ladder.targets[" + std::to_string(i) + "]",
                    (*targets)[i].dump() + " is not above " + (*targets)[i - 1].dump(),
                    "list the targets in ascending order");
  }
  if (const Json* depths = find_value(document.value, "ladder.depths");
      depths && depths->is_array()) {
    for (size_t i = 0; i < depths->size(); ++i)
      if ((*depths)[i].is_number() && ((*depths)[i] <= 0 || (*depths)[i] >= 1))
        judge.error("ladder.depths[" + std::to_string(i) + "]", "found " + (*depths)[i].dump(),
                    "wanted a number above 0 and below 1");
  }
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
