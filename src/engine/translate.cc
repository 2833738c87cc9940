#include "engine/translate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/strings.h"
#include "recipe/expression.h"

namespace anvil::engine {

namespace {

bool is_set(const Json& value) {
  return !value.is_null() && !(value.is_string() && value.get_ref<const std::string&>().empty());
}

bool contains(const Json& list, const Json& value) {
  return std::any_of(list.begin(), list.end(),
                     [&](const Json& one) { return same_value(one, value); });
}

// Turns one recipe through one table; collects what is wrong instead of stopping at it.
class Translator {
 public:
  Translator(const InterfaceTable& table, const recipe::Recipe& recipe, const LaunchValues& values)
      : table_(table), recipe_(recipe), values_(values) {}

  Translation run() {
    const Json& document = table_.document();
    if (const auto fields = document.find("field"); fields != document.end()) {
      for (const Json& field : *fields) translate(field);
    }
    for (const auto& [flag, merged] : merged_) {
      result_.settings[merged.setting].args = {flag, base::canonical(merged.object)};
    }
    return std::move(result_);
  }

 private:
  struct Merged {
    size_t setting;
    Json object;
  };

  Json look_up(std::string_view path) const {
    if (const auto found = values_.find(path); found != values_.end()) return found->second;
    return recipe_.at(path);
  }

  void wrong(const Json& field, std::string problem, std::string remedy) {
    result_.diagnostics.push_back({recipe::Diagnostic::Severity::kError,
                                   recipe_.position(field.at("recipe").get<std::string>()),
                                   std::move(problem), std::move(remedy)});
  }

  bool condition_holds(std::string_view path, const Json& wanted) const {
    const Json value = look_up(path);
    if (wanted.is_array()) return contains(wanted, value);
    if (!wanted.is_string()) return same_value(wanted, value);
    const std::string& word = wanted.get_ref<const std::string&>();
    if (word == "positive") return value.is_number() && value.get<double>() > 0;
    if (word.starts_with("not ")) return is_set(value) && value != Json(word.substr(4));
    return value == wanted;
  }

  bool applies(const Json& field) const {
    if (const auto when = field.find("when"); when != field.end()) {
      for (const auto& [path, wanted] : when->items()) {
        if (!condition_holds(path, wanted)) return false;
      }
    }
    if (const auto unless = field.find("unless"); unless != field.end()) {
      for (const Json& path : *unless) {
        if (is_set(look_up(path.get<std::string>()))) return false;
      }
    }
    return true;
  }

  // The value that the engine gets; null when there is nothing to write.
  Json value_of(const Json& field) {
    const std::string path = field.at("recipe");
    Json value = look_up(path);
    if (!is_set(value) && !field.value("always", false)) return nullptr;
    if (const auto only = field.find("only"); only != field.end()) {
      if (!contains(*only, value)) {
        std::vector<std::string> possible;
        for (const Json& one : *only) possible.push_back(argument_text(one));
        wrong(field, table_.name() + " cannot have " + argument_text(value) + " here",
              "possible is " + base::join(possible, ", "));
      }
      return nullptr;
    }
    if (const auto skip = field.find("skip"); skip != field.end() && contains(*skip, value)) {
      return nullptr;
    }
    if (const auto multiple = field.find("multiple"); multiple != field.end()) {
      check_multiple(field, value, multiple->get<int64_t>());
    }
    if (const auto map = field.find("map"); map != field.end()) {
      const auto found = map->find(argument_text(value));
      if (found == map->end()) {
        if (field.value("unmapped", "error") == "skip") return nullptr;
        std::vector<std::string> known;
        for (const auto& [name, unused] : map->items()) known.push_back(name);
        wrong(field, table_.name() + " has no \"" + argument_text(value) + "\"",
              "it knows " + base::join(known, ", "));
        return nullptr;
      }
      value = *found;
    }
    if (const auto text = field.find("value"); text != field.end()) {
      auto rendered = render(text->get_ref<const std::string&>());
      if (!rendered) {
        wrong(field, rendered.error().detail, rendered.error().hint);
        return nullptr;
      }
      value = std::move(*rendered);
    }
    if (value.is_number_integer() && (value > std::numeric_limits<int32_t>::max()) &&
        path != "serving.seed") {
      wrong(field, argument_text(value) + " is more than " + table_.name() + " can take",
            "at most 2147483647 in all, over every sequence");
      return nullptr;
    }
    return value;
  }

  void check_multiple(const Json& field, const Json& value, int64_t multiple) {
    if (!value.is_number_integer()) return;
    const int64_t number = value.get<int64_t>();
    if (number % multiple == 0) return;
    const int64_t up = (number / multiple + 1) * multiple;
    wrong(field,
          table_.name() + " rounds " + std::to_string(number) + " up to " + std::to_string(up) +
              " in every slot",
          "write a multiple of " + std::to_string(multiple) + ", e.g. " + std::to_string(up));
  }

  // "{a * b}" alone keeps the type of its value; otherwise the parts are put into the text.
  Result<Json> render(std::string_view text) const {
    const recipe::FieldLookup lookup = [this](std::string_view path) { return look_up(path); };
    if (text.starts_with('{') && text.find('}') == text.size() - 1) {
      return recipe::evaluate(text.substr(1, text.size() - 2), lookup);
    }
    std::string out;
    while (!text.empty()) {
      const size_t open = text.find('{');
      out += text.substr(0, open);
      if (open == std::string_view::npos) break;
      const size_t close = text.find('}', open);
      if (close == std::string_view::npos) {
        return fail(Kind::kInvalidInput, Side::kInternal, "a \"{\" has no \"}\" in the table");
      }
      out += argument_text(TRY(recipe::evaluate(text.substr(open + 1, close - open - 1), lookup)));
      text.remove_prefix(close + 1);
    }
    return Json(std::move(out));
  }

  void translate(const Json& field) {
    if (!applies(field)) return;
    const Json value = value_of(field);
    if (value.is_null()) return;
    Setting setting;
    setting.field = field.at("recipe");
    const std::string form = field.value("form", "value");
    if (field.contains("env")) {
      if (form == "bool-true") {
        if (value == Json(false)) return;
        setting.env[field["env"]] = field.value("on", "true");
      } else {
        setting.env[field["env"]] = argument_text(value);
      }
    } else if (!add_arguments(field, form, value, setting)) {
      return;
    }
    result_.settings.push_back(std::move(setting));
  }

  // False when the value needs no setting.
  bool add_arguments(const Json& field, const std::string& form, const Json& value,
                     Setting& setting) {
    const std::string flag = field.value("flag", "");
    if (form == "positional") {
      setting.args = {argument_text(value)};
    } else if (form == "equals") {
      setting.args = {flag + "=" + argument_text(value)};
    } else if (form == "bool-true" || form == "bool-false") {
      if (value != Json(form == "bool-true")) return false;
      setting.args = {flag};
    } else if (form == "bool-pair") {
      setting.args = {value == Json(true) ? flag : field.value("off", "")};
    } else if (form == "json") {
      const auto [place, added] = merged_.try_emplace(flag, Merged{result_.settings.size(), {}});
      place->second.object[field.at("key").get<std::string>()] = value;
    } else if (form == "repeat") {
      for (const Json& one : value) {
        setting.args.push_back(flag);
        setting.args.push_back(argument_text(one));
      }
    } else if (form == "join") {
      std::vector<std::string> parts;
      for (const Json& one : value) parts.push_back(argument_text(one));
      setting.args = {flag, base::join(parts, ",")};
    } else {
      setting.args = {flag, argument_text(value)};
    }
    return true;
  }

  const InterfaceTable& table_;
  const recipe::Recipe& recipe_;
  const LaunchValues& values_;
  Translation result_;
  std::map<std::string, Merged> merged_;
};

}  // namespace

std::string argument_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return base::format_number(value.get<double>());
  return base::canonical(value);
}

bool same_value(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    const double x = a.get<double>();
    const double y = b.get<double>();
    return std::abs(x - y) <= 1e-6 * std::max({std::abs(x), std::abs(y), 1e-6});
  }
  return a == b;
}

LaunchValues declared_launch_values(const recipe::Recipe& recipe) {
  LaunchValues values;
  std::string model = recipe.text("launch.model_path");
  bool is_repo = false;
  if (model.empty()) {
    const Json& artifacts = recipe.at("model.artifact");
    for (const Json& artifact : artifacts.is_array() ? artifacts : Json::array()) {
      if (artifact.value("kind", "weights") == "weights") {
        model = artifact.value("file", "");
        break;
      }
    }
  }
  if (model.empty()) {
    model = recipe.text("model.repo");
    is_repo = true;
  }
  values["launch.model_path"] = model;
  values["launch.model_is_repo"] = is_repo;
  const std::string draft = recipe.text("speculation.draft.path");
  values["launch.draft_path"] = draft.empty() ? model : draft;
  return values;
}

Translation translate_all(const InterfaceTable& table, const recipe::Recipe& recipe,
                          const LaunchValues& values) {
  return Translator(table, recipe, values).run();
}

Result<std::vector<Setting>> translate(const InterfaceTable& table, const recipe::Recipe& recipe,
                                       const LaunchValues& values) {
  Translation translation = translate_all(table, recipe, values);
  if (recipe::has_errors(translation.diagnostics)) {
    return fail(recipe::to_error(translation.diagnostics));
  }
  return std::move(translation.settings);
}

}  // namespace anvil::engine
