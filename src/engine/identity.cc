#include "engine/identity.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/files.h"
#include "base/hash.h"
#include "base/strings.h"
#include "engine/engine_call.h"
#include "engine/python_literal.h"
#include "engine/translate.h"
#include "recipe/fields.h"

namespace anvil::engine {

namespace {

using Verdict = IdentityField::Verdict;

// Fields that say what is served, in contrast to how it is started and measured.
constexpr std::string_view kIdentityTables[] = {"model.",    "engine.",      "serving.",
                                                "sampling.", "speculation.", "loader."};
// What the engine cannot know: requests carry it, or it is a word of ours.
constexpr std::string_view kOurs[] = {"serving.efforts", "engine.interface"};

std::string_view word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kMatch:
      return "match";
    case Verdict::kMismatch:
      return "mismatch";
    case Verdict::kNotObservable:
      return "not observable";
  }
  return "";
}

struct Observation {
  Json value;
  std::string source;
};

std::string without_local(std::string text) {
  if (text.starts_with('v')) text.erase(0, 1);
  return text.substr(0, text.find('+'));
}

// "b11549-abcdef" -> "11549"
std::string build_number(std::string text) {
  if (text.starts_with('b')) text.erase(0, 1);
  return text.substr(0, text.find_first_of("- ("));
}

// Looks at one engine and one recipe. Answers are asked for once.
class Observer {
 public:
  Observer(const recipe::Recipe& recipe, const InterfaceTable& table, const std::string& base_url,
           const Json& phases, const std::string& api_key, const Json& artifacts)
      : recipe_(recipe),
        document_(table.document()),
        base_url_(base_url),
        api_key_(api_key),
        artifacts_(artifacts),
        values_(declared_launch_values(recipe)) {
    for (const Json& phase : phases.is_array() ? phases : Json::array()) {
      if (phase.is_object() && phase.contains("values")) facts_.update(phase["values"]);
    }
  }

  Result<Identity> run() {
    Identity identity;
    if (auto found = find_served(identity); !found) return fail(std::move(found.error()));
    const auto rules = document_.find("identity");
    for (const Json& rule : rules == document_.end() ? Json::array() : *rules) {
      apply(rule, identity);
    }
    add_unseen(identity);
    for (const auto& [path, answer] : answers_) {
      identity.raw[path] = answer ? *answer : Json{{"error", to_string(answer.error())}};
    }
    return identity;
  }

 private:
  const Result<Json>& answer(const std::string& path) {
    auto found = answers_.find(path);
    if (found == answers_.end()) {
      found = answers_.emplace(path, call_json(base_url_, path, api_key_)).first;
    }
    return found->second;
  }

  // The model that requests must name: the declared one if the engine lists it, else its only one.
  Result<void> find_served(Identity& identity) {
    const auto models = document_.find("models");
    const std::string declared = recipe_.text("model.served_name");
    if (models == document_.end()) {
      identity.served_model = declared;
      return {};
    }
    const std::string path = models->value("path", "/v1/models");
    const Result<Json>& listed = answer(path);
    if (!listed) {
      Error error = listed.error();
      error.with_context("asking the engine for its models");
      return fail(std::move(error));
    }
    std::vector<std::string> ids;
    const Json data = listed->is_object() ? listed->value("data", Json::array()) : Json::array();
    for (const Json& entry : data.is_array() ? data : Json::array()) {
      if (!entry.is_object() || !entry.contains("id") || !entry["id"].is_string()) continue;
      ids.push_back(entry["id"]);
      if (served_.is_null() || ids.back() == declared) served_ = entry;
      // Other names of the same model are as good as its id.
      for (const Json& alias : entry.value("aliases", Json::array())) {
        if (alias.is_string() && alias == Json(declared)) {
          served_ = entry;
          served_["id"] = declared;
        }
      }
    }
    if (ids.empty()) {
      return fail(Kind::kProtocol, Side::kUpstream, path + " lists no model");
    }
    if (ids.size() > 1 && !declared.empty() && served_["id"] != Json(declared)) {
      return fail(
          Kind::kMismatch, Side::kEngine,
          "the engine serves " + base::join(ids, ", ") + ", and none is \"" + declared + "\"",
          "correct model.served_name, or talk to another server");
    }
    identity.served_model = served_["id"].get<std::string>();
    return {};
  }

  Json declared_value(const std::string& field) const {
    if (const auto found = values_.find(field); found != values_.end()) return found->second;
    return recipe_.at(field);
  }

  // "{a}=={b}" over the facts of the log; null if one of them is missing.
  Json from_log(std::string_view text) const {
    std::string out;
    const std::string_view whole = text;
    while (!text.empty()) {
      const size_t open = text.find('{');
      out += text.substr(0, open);
      if (open == std::string_view::npos) break;
      const size_t close = text.find('}', open);
      if (close == std::string_view::npos) return nullptr;
      const auto fact = facts_.find(std::string(text.substr(open + 1, close - open - 1)));
      if (fact == facts_.end()) return nullptr;
      if (open == 0 && close + 1 == whole.size()) return *fact;
      out += argument_text(*fact);
      text.remove_prefix(close + 1);
    }
    return out;
  }

  Observation observe(const Json& rule) {
    if (rule.contains("log")) {
      Json value = from_log(rule["log"].get_ref<const std::string&>());
      std::string source = "log";
      if (const auto argument = rule.find("argument"); argument != rule.end()) {
        const std::string key = *argument;
        source += ", arguments: " + key;
        if (!value.is_string()) return {nullptr, source};
        value = python_value(value.get_ref<const std::string&>(), key);
      }
      return {std::move(value), std::move(source)};
    }
    const std::string path = rule.value("path", "");
    const std::string pointer = rule.value("pointer", "");
    const std::string transform = rule.value("transform", "");
    std::string source = "GET " + path + " " + pointer;
    if (transform == "served-id") return {served_.value("id", Json()), source};
    const bool in_entry =
        transform == "served-key" || (transform == "artifact" && rule.contains("key"));
    if (in_entry) return {served_.value(rule.value("key", ""), Json()), source};
    const Result<Json>& got = answer(path);
    if (!got) return {nullptr, source};
    const Json::json_pointer at(pointer);
    if (!got->contains(at)) return {nullptr, source};
    Json value = (*got)[at];
    if (transform == "sha256" && value.is_string()) {
      value = base::sha256(value.get_ref<const std::string&>());
      source = "SHA-256 of " + source;
    }
    return {std::move(value), std::move(source)};
  }

  bool already(const Identity& identity, const std::string& field) const {
    return std::any_of(identity.fields.begin(), identity.fields.end(),
                       [&](const IdentityField& one) {
                         return one.field == field && one.verdict != Verdict::kNotObservable;
                       });
  }

  void apply(const Json& rule, Identity& identity) {
    const std::string field = rule.at("field");
    if (already(identity, field)) return;
    Observation seen = observe(rule);
    if (const auto unknown = rule.find("unknown");
        unknown != rule.end() &&
        std::find(unknown->begin(), unknown->end(), seen.value) != unknown->end()) {
      seen.value = nullptr;
    }
    if (const auto map = rule.find("map"); map != rule.end() && seen.value.is_string()) {
      if (const auto found = map->find(seen.value.get<std::string>()); found != map->end()) {
        seen.value = *found;
      }
    }
    if (rule.value("transform", "") == "artifact") {
      if (seen.value.is_string()) add_artifacts(seen, identity);
      return;
    }
    const Json declared = declared_value(field);
    if (seen.value.is_null() || declared.is_null()) return;
    // Where an engine that somebody else started has its files is only a fact if it was declared.
    if (field == "launch.model_path" && recipe_.text("launch.runner") == "external" &&
        !recipe_.has("launch.model_path"))
      return;
    IdentityField result{field, declared, seen.value, Verdict::kMismatch, seen.source};
    if (agrees(rule, field, declared, seen.value)) result.verdict = Verdict::kMatch;
    identity.fields.push_back(std::move(result));
  }

  bool agrees(const Json& rule, const std::string& field, const Json& declared,
              const Json& seen) const {
    const std::string compare = rule.value("compare", "equal");
    if (compare == "version") {
      return without_local(argument_text(declared)) == without_local(argument_text(seen));
    }
    if (compare == "build") {
      return build_number(argument_text(declared)) == build_number(argument_text(seen));
    }
    if (field == "launch.model_path" && declared.is_string() && seen.is_string()) {
      // The recipe may name a file that was found elsewhere: the engine saw the whole path.
      const std::string& path = seen.get_ref<const std::string&>();
      const std::string& name = declared.get_ref<const std::string&>();
      return path == name || base::base_name(path) == base::base_name(name) ||
             base::base_name(path) == base::base_name(base::parent_path(name));
    }
    if (field == "speculation.method" && declared.is_string() && seen.is_string()) {
      return base::replace_all(declared, "-", "_") == base::replace_all(seen, "-", "_");
    }
    return same_value(declared, seen);
  }

  // Digests that were proven before the launch hold for the file that the engine says it serves.
  void add_artifacts(const Observation& seen, Identity& identity) {
    const std::string& served = seen.value.get_ref<const std::string&>();
    for (size_t i = 0; i < artifacts_.size(); ++i) {
      const Json& proven = artifacts_[i];
      const std::string path = proven.value("path", "");
      const std::string digest = proven.value("sha256", "");
      if (path.empty() || digest.empty() || (path != served && base::parent_path(path) != served)) {
        continue;
      }
      const std::string source =
          "file " + base::base_name(path) + ", looked at before the launch; " + seen.source;
      const auto add = [&](const std::string& field, const Json& observed) {
        const Json& declared = recipe_.at(field);
        if (declared.is_null() || observed.is_null() || already(identity, field)) return;
        identity.fields.push_back({field, declared, observed,
                                   declared == observed ? Verdict::kMatch : Verdict::kMismatch,
                                   source});
      };
      const std::string artifact = "model.artifact[" + std::to_string(i) + "]";
      add(artifact + ".sha256", digest);
      add(artifact + ".bytes", proven.value("bytes", Json()));
    }
  }

  // A name of something whose content is declared too says nothing more.
  bool is_named_by_digest(const std::string& path) const {
    if (path == "model.chat_template") return recipe_.has("model.chat_template_sha256");
    constexpr std::string_view kFile = "].file";
    return path.starts_with("model.artifact[") && path.ends_with(kFile) &&
           recipe_.has(path.substr(0, path.size() - kFile.size() + 1) + ".sha256");
  }

  // Everything else that the recipe declares and that nobody showed us.
  void add_unseen(Identity& identity) const {
    std::set<std::string> known;
    for (const IdentityField& field : identity.fields) known.insert(field.field);
    for (const auto& [path, value] : recipe::recipe_schema().flatten(recipe_.document())) {
      const auto starts = [&](std::string_view prefix) { return path.starts_with(prefix); };
      if (!recipe_.has(path) || known.contains(path) || value.is_null() ||
          std::none_of(std::begin(kIdentityTables), std::end(kIdentityTables), starts) ||
          std::find(std::begin(kOurs), std::end(kOurs), path) != std::end(kOurs)) {
        continue;
      }
      const recipe::Field* schema = recipe::recipe_schema().find(path);
      if ((schema != nullptr && schema->label) || is_named_by_digest(path)) continue;
      identity.fields.push_back({path, value, nullptr, Verdict::kNotObservable, ""});
    }
  }

  const recipe::Recipe& recipe_;
  const Json& document_;
  const std::string& base_url_;
  const std::string& api_key_;
  const Json& artifacts_;
  LaunchValues values_;
  Json facts_ = Json::object();
  Json served_;
  std::map<std::string, Result<Json>> answers_;
};

}  // namespace

Json to_json(const Identity& identity) {
  Json fields = Json::array();
  for (const IdentityField& field : identity.fields) {
    fields.push_back({{"field", field.field},
                      {"declared", field.declared},
                      {"observed", field.observed},
                      {"verdict", word(field.verdict)},
                      {"source", field.source}});
  }
  return {{"fields", std::move(fields)},
          {"served_model", identity.served_model},
          {"raw", identity.raw}};
}

Result<Identity> observe_identity(const recipe::Recipe& recipe, const InterfaceTable& table,
                                  const std::string& base_url, const Json& log_phases,
                                  const std::string& api_key, const Json& artifacts) {
  return Observer(recipe, table, base_url, log_phases, api_key, artifacts).run();
}

}  // namespace anvil::engine
