#include <algorithm>
#include <set>

#include "base/strings.h"
#include "engine/interface_table.h"
#include "engine/translate.h"
#include "recipe/fields.h"

namespace anvil::engine {

namespace {

using recipe::Diagnostic;
using Severity = recipe::Diagnostic::Severity;

// Tables of a recipe whose fields mean nothing unless the engine is told.
constexpr std::string_view kLaunchable[] = {"serving.", "sampling.", "speculation.", "loader."};

bool is_flag(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

// `--max_model_len` and `--max-model-len` are one flag to argparse.
std::string plain_flag(std::string_view word) {
  std::string flag(word);
  if (flag.starts_with("--")) std::replace(flag.begin() + 2, flag.end(), '_', '-');
  return flag;
}

// One raw flag as a person wrote it.
struct RawFlag {
  std::string name;  // without value and without ".key"
  std::string key;   // of "--flag.key"
  std::optional<std::string> value;
  Position at;
  std::string written;
};

std::vector<RawFlag> raw_flags(const recipe::Recipe& recipe) {
  const std::vector<std::string> args = recipe.list("launch.extra_args");
  std::vector<RawFlag> flags;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!is_flag(args[i])) continue;
    RawFlag flag;
    flag.at = recipe.position("launch.extra_args[" + std::to_string(i) + "]");
    flag.written = args[i];
    std::string_view word = args[i];
    if (const size_t equals = word.find('='); equals != std::string_view::npos) {
      flag.value = std::string(word.substr(equals + 1));
      word = word.substr(0, equals);
    } else if (i + 1 < args.size() && !is_flag(args[i + 1])) {
      flag.value = args[i + 1];
      flag.written += " " + args[i + 1];
    }
    if (const size_t dot = word.find('.'); word.starts_with("--") && dot != word.npos) {
      flag.key = word.substr(dot + 1);
      word = word.substr(0, dot);
    }
    flag.name = plain_flag(word);
    flags.push_back(std::move(flag));
  }
  return flags;
}

bool same_text(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const auto x = base::parse_double(a);
  const auto y = base::parse_double(b);
  if (x && y) return same_value(*x, *y);
  const auto json_a = base::parse_json(a, "a");
  const auto json_b = base::parse_json(b, "b");
  return json_a && json_b && *json_a == *json_b;
}

class Checker {
 public:
  Checker(const InterfaceTable& table, const recipe::Recipe& recipe)
      : document_(table.document()), name_(table.name()), recipe_(recipe) {
    LaunchValues values = declared_launch_values(recipe);
    Translation translation = translate_all(table, recipe, values);
    settings_ = std::move(translation.settings);
    diagnostics_ = std::move(translation.diagnostics);
    const auto found = document_.find("declared");
    if (found != document_.end()) {
      for (const Json& one : *found) declared_.insert(one.get<std::string>());
    }
    if (const auto fields = document_.find("field"); fields != document_.end()) fields_ = *fields;
  }

  std::vector<Diagnostic> run() {
    if (!declared_.contains("*")) {
      for (const auto& [path, value] : recipe::recipe_schema().flatten(recipe_.document())) {
        if (recipe_.has(path)) check_expressible(path, value);
      }
    }
    for (const RawFlag& flag : raw_flags(recipe_)) check_flag(flag);
    check_environment("launch.env");
    if (const Json& platforms = recipe_.at("platform"); platforms.is_object()) {
      for (const auto& [platform, unused] : platforms.items()) {
        check_environment("platform." + platform + ".env");
      }
    }
    check_efforts();
    recipe::sort_by_position(diagnostics_);
    return std::move(diagnostics_);
  }

 private:
  void say(Severity severity, Position at, std::string problem, std::string remedy) {
    diagnostics_.push_back({severity, std::move(at), std::move(problem), std::move(remedy)});
  }

  const Setting* setting_of(const std::string& field) const {
    for (const Setting& setting : settings_) {
      if (setting.field == field) return &setting;
    }
    return nullptr;
  }

  // A written field must reach the engine, be known not to need it, or be its default.
  void check_expressible(const std::string& path, const Json& value) {
    if (std::none_of(std::begin(kLaunchable), std::end(kLaunchable),
                     [&](std::string_view prefix) { return path.starts_with(prefix); })) {
      return;
    }
    if (declared_.contains(path)) return;
    const recipe::Field* schema = recipe::recipe_schema().find(path);
    if (schema != nullptr && same_value(schema->fallback, value)) return;
    bool known = false;
    bool always_takes = false;
    for (const Json& field : fields_) {
      if (field.at("recipe") != path) continue;
      known = true;
      if (field.contains("only") || field.contains("skip") || field.contains("map") ||
          field.value("form", "").starts_with("bool-")) {
        always_takes = true;  // silence is an answer, or translate() has complained already
      }
    }
    if (!known) {
      say(Severity::kError, recipe_.position(path), name_ + " has no setting for this",
          "remove it; if this build does know it, write the raw flag into launch.extra_args");
    } else if (!always_takes && setting_of(path) == nullptr) {
      say(Severity::kWarning, recipe_.position(path), "it has no effect with the other settings",
          "remove it, or set what it belongs to (speculation.method, ...)");
    }
  }

  static bool spells(const Json& field, const std::string& flag) {
    if (field.value("flag", "") == flag || field.value("off", "") == flag) return true;
    const auto aliases = field.find("aliases");
    return aliases != field.end() &&
           std::find(aliases->begin(), aliases->end(), flag) != aliases->end();
  }

  void check_flag(const RawFlag& flag) {
    std::vector<const Json*> owners;
    for (const Json& field : fields_) {
      if (spells(field, flag.name)) owners.push_back(&field);
    }
    if (owners.empty()) return;
    // The owner that wrote something; a JSON argument belongs to whoever wrote its first key.
    for (const Json* owner : owners) {
      const Setting* setting = setting_of(owner->at("recipe"));
      if (setting == nullptr) continue;
      if (owner->value("form", "") == "json" && setting->args.empty()) continue;
      compare_flag(flag, *owner, *setting);
      return;
    }
    const std::string field = owners.front()->at("recipe");
    say(Severity::kWarning, flag.at, "\"" + flag.written + "\" bypasses a typed field",
        "set " + field + " instead, so that comparisons see it");
  }

  void compare_flag(const RawFlag& flag, const Json& owner, const Setting& setting) {
    const std::string field = setting.field;
    const std::string form = owner.value("form", "value");
    bool same = false;
    if (form.starts_with("bool-")) {
      same = !setting.args.empty() && plain_flag(setting.args[0]) == flag.name;
      const bool alias =
          flag.name != owner.value("flag", "") && flag.name != owner.value("off", "");
      if (alias) same = !setting.args.empty() && setting.args[0] == owner.value("flag", "");
    } else if (!setting.args.empty() && flag.value) {
      std::string typed = setting.args.back();
      if (!flag.key.empty()) {
        const auto object = base::parse_json(typed, "argument");
        typed = object && object->contains(flag.key) ? argument_text((*object)[flag.key]) : "";
      } else if (form == "equals") {
        typed = typed.substr(typed.find('=') + 1);
      }
      same = same_text(*flag.value, typed);
    }
    const std::string now = setting.args.empty() ? "" : base::join(setting.args, " ");
    if (same) {
      say(Severity::kWarning, flag.at, "\"" + flag.written + "\" repeats " + field,
          "remove the raw flag");
    } else {
      say(Severity::kError, flag.at,
          "\"" + flag.written + "\" contradicts " + field + ", which gives \"" + now + "\"",
          "remove the raw flag, or change " + field);
    }
  }

  void check_environment(const std::string& table) {
    const Json& env = recipe_.at(table);
    if (!env.is_object()) return;
    for (const auto& [variable, value] : env.items()) {
      const Position at = recipe_.position(table + "." + variable);
      const auto owner = std::find_if(fields_.begin(), fields_.end(), [&](const Json& field) {
        return field.value("env", "") == variable;
      });
      if (owner == fields_.end()) continue;
      const std::string field = owner->at("recipe");
      const Setting* setting = nullptr;
      for (const Setting& one : settings_) {
        if (one.env.contains(variable)) setting = &one;
      }
      if (setting == nullptr) {
        say(Severity::kWarning, at, "it bypasses a typed field",
            "set " + field + " instead, so that comparisons see it");
      } else if (same_text(argument_text(value), setting->env.at(variable))) {
        say(Severity::kWarning, at, "it repeats " + field, "remove the variable");
      } else {
        say(Severity::kError, at,
            variable + " = " + argument_text(value) + " contradicts " + field + ", which gives " +
                setting->env.at(variable),
            "remove the variable, or change " + field);
      }
    }
  }

  void check_efforts() {
    const auto known = document_.find("efforts");
    if (known == document_.end()) return;
    const std::vector<std::string> efforts = recipe_.list("serving.efforts");
    for (size_t i = 0; i < efforts.size(); ++i) {
      if (std::find(known->begin(), known->end(), efforts[i]) != known->end()) continue;
      say(Severity::kError, recipe_.position("serving.efforts[" + std::to_string(i) + "]"),
          name_ + " does not know the effort \"" + efforts[i] + "\"",
          "it knows " + base::join(known->get<std::vector<std::string>>(), ", "));
    }
  }

  const Json& document_;
  const std::string& name_;
  const recipe::Recipe& recipe_;
  Json fields_ = Json::array();
  std::set<std::string> declared_;
  std::vector<Setting> settings_;
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace

std::vector<recipe::Diagnostic> InterfaceTable::check(const recipe::Recipe& recipe) const {
  return Checker(*this, recipe).run();
}

}  // namespace anvil::engine
