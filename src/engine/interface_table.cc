#include "engine/interface_table.h"

#include <algorithm>
#include <array>

#include "base/embedded.h"
#include "base/files.h"
#include "base/strings.h"
#include "engine/interface_rules.h"
#include "engine/interface_schema.h"
#include "recipe/toml_document.h"

namespace anvil::engine {

std::span<const base::EmbeddedFile> embedded_files();

namespace {

constexpr int kExtendsDepth = 4;

std::string stem_of(std::string_view file) {
  const size_t slash = file.rfind('/');
  std::string_view name = slash == std::string_view::npos ? file : file.substr(slash + 1);
  if (name.ends_with(".toml")) name.remove_suffix(5);
  return std::string(name);
}

const base::EmbeddedFile* shipped_file(std::string_view name) {
  for (const base::EmbeddedFile& file : embedded_files()) {
    if (stem_of(file.name) == name) return &file;
  }
  return nullptr;
}

// `child` with what it does not say taken from `parent`; failure signatures are joined.
Json inherit(Json child, const Json& parent) {
  for (const auto& [key, value] : parent.items()) {
    if (key == "abstract" || key == "name" || key == "schema") continue;
    if (key == "failure" && child.contains(key)) {
      for (const Json& rule : value) child[key].push_back(rule);
    } else if (!child.contains(key)) {
      child[key] = value;
    }
  }
  return child;
}

Result<Json> document_of(std::string_view toml, const std::string& path, int depth) {
  auto loaded = recipe::parse_toml(toml, path);
  if (!loaded.ok()) return fail(recipe::to_error(loaded.diagnostics));
  const auto diagnostics = interface_schema().check(*loaded.value);
  if (recipe::has_errors(diagnostics)) return fail(recipe::to_error(diagnostics));
  Json document = std::move(loaded.value->value);
  if (!document.contains("extends")) return document;
  const std::string parent = document["extends"];
  const base::EmbeddedFile* file = shipped_file(parent);
  if (file == nullptr || depth >= kExtendsDepth) {
    return fail(Error(Kind::kInvalidInput, Side::kClient,
                      "extends: there is no shipped interface table \"" + parent + "\"")
                    .with_position(loaded.value->position("extends")));
  }
  return inherit(std::move(document),
                 TRY(document_of(file->bytes, std::string(file->name), depth + 1)));
}

std::vector<std::string> texts(const Json& object, const char* key) {
  std::vector<std::string> result;
  if (const auto found = object.find(key); found != object.end()) {
    for (const Json& one : *found) result.push_back(one.get<std::string>());
  }
  return result;
}

const Json& list_of(const Json& document, const char* key) {
  static const Json kNone = Json::array();
  const auto found = document.find(key);
  return found == document.end() ? kNone : *found;
}

Result<std::vector<LogPattern>> patterns_of(const std::vector<std::string>& sources) {
  std::vector<LogPattern> result;
  for (const std::string& source : sources) result.push_back(TRY(LogPattern::parse(source)));
  return result;
}

PhaseRule::Keep keep_of(const std::string& word) {
  if (word == "last") return PhaseRule::Keep::kLast;
  if (word == "min") return PhaseRule::Keep::kMin;
  if (word == "max") return PhaseRule::Keep::kMax;
  return PhaseRule::Keep::kFirst;
}

Result<std::shared_ptr<const InterfaceTable::Rules>> compile(const Json& document) {
  auto rules = std::make_shared<InterfaceTable::Rules>();
  for (const Json& one : list_of(document, "phase")) {
    PhaseRule rule;
    rule.name = one.at("name");
    rule.pattern = TRY(LogPattern::parse(one.at("pattern").get<std::string>()));
    rule.fact = one.value("fact", false);
    rule.keep = keep_of(one.value("keep", "first"));
    rules->phases.push_back(std::move(rule));
  }
  for (const Json& one : list_of(document, "failure")) {
    FailureRule rule;
    rule.klass = one.at("class");
    rule.hint = one.at("hint");
    rule.patterns = TRY(patterns_of(texts(one, "patterns")));
    rule.phases = texts(one, "phases");
    rule.wrapper = one.value("wrapper", false);
    rule.last = one.value("last", false);
    rules->failures.push_back(std::move(rule));
  }
  rules->mild = texts(document, "mild");
  if (const auto found = document.find("readiness"); found != document.end()) {
    rules->readiness.path = found->value("path", rules->readiness.path);
    rules->readiness.ready = found->value("ready", rules->readiness.ready);
    rules->readiness.loading = found->value("loading", std::vector<int>{});
  }
  rules->program_hint = document.value("program_hint", "");
  rules->version_patterns = TRY(patterns_of(texts(document, "version_patterns")));
  return rules;
}

}  // namespace

std::vector<std::string> InterfaceTable::shipped() {
  std::vector<std::string> names;
  for (const base::EmbeddedFile& file : embedded_files()) {
    if (stem_of(file.name) != "common") names.push_back(stem_of(file.name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<InterfaceTable> InterfaceTable::parse(std::string_view toml, const std::string& path) {
  InterfaceTable table;
  table.document_ = TRY(document_of(toml, path, 0));
  table.name_ = table.document_.at("name");
  if (table.document_.value("abstract", false)) {
    return fail(Kind::kInvalidInput, Side::kClient,
                "interface table \"" + table.name_ + "\" is only for others to extend");
  }
  auto rules = compile(table.document_);
  if (!rules) return fail(std::move(rules.error().with_context(path)));
  table.rules_ = std::move(*rules);
  return table;
}

Result<InterfaceTable> InterfaceTable::load(std::string_view name_or_path) {
  if (const base::EmbeddedFile* file = shipped_file(name_or_path)) {
    return parse(file->bytes, std::string(file->name));
  }
  const std::string path(name_or_path);
  if (path.find('/') == std::string::npos && !path.ends_with(".toml")) {
    const std::vector<std::string> names = shipped();
    const auto near = base::did_you_mean(path, names);
    return fail(Kind::kInvalidInput, Side::kClient, "there is no interface table \"" + path + "\"",
                near ? "did you mean \"" + *near + "\"?"
                     : "shipped are " + base::join(names, ", ") + "; or give a file");
  }
  return parse(TRY(base::read_file(path, recipe::kTomlLimit)), path);
}

Result<InterfaceTable> InterfaceTable::for_recipe(const recipe::Recipe& recipe) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kNewest = {
      {{"llama.cpp", "llama.cpp"},
       {"vllm", "vllm-0.32"},
       {"sglang", "sglang"},
       {"external", "openai"}}};
  const std::string kind = recipe.text("engine.kind");
  std::string name = recipe.text("engine.interface");
  std::string key = "engine.interface";
  if (name.empty()) {
    key = "engine.kind";
    for (const auto& [one, table] : kNewest) {
      if (one == kind) name = table;
    }
  } else if (name.ends_with(".toml") && !name.starts_with('/')) {
    name = base::join_path(base::parent_path(recipe.path()), name);
  }
  auto table = load(name);
  if (!table) {
    Error error = std::move(table.error());
    if (!error.at) error.with_position(recipe.position(key));
    return fail(std::move(error));
  }
  const std::string engine = table->document_.value("engine", "");
  if (engine != kind && kind != "external") {
    return fail(Error(Kind::kInvalidInput, Side::kClient,
                      "interface table \"" + table->name_ + "\" is for " + engine +
                          ", and engine.kind is \"" + kind + "\"",
                      "choose a table for this engine, or correct engine.kind")
                    .with_position(recipe.position(key)));
  }
  return table;
}

Json InterfaceTable::consequence_rules() const {
  return list_of(document_, "consequence");
}

}  // namespace anvil::engine
