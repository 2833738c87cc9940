#include "recipe/recipe.h"

#include <CLI/CLI.hpp>

#include "app/app.h"
#include "base/strings.h"
#include "engine/interface_table.h"
#include "engine/runner.h"
#include "recipe/diff.h"

namespace anvil::app {

namespace {

struct Checked {
  std::optional<recipe::Recipe> recipe;
  std::optional<engine::InterfaceTable> table;
  std::vector<recipe::Diagnostic> diagnostics;
};

// Loads a recipe and holds it against the interface table that it names.
Checked check(const std::string& path) {
  Checked out;
  auto loaded = recipe::load_recipe(path);
  out.diagnostics = std::move(loaded.diagnostics);
  out.recipe = std::move(loaded.value);
  if (!out.recipe) return out;
  auto table = engine::InterfaceTable::for_recipe(*out.recipe);
  if (!table) {
    out.diagnostics.push_back({recipe::Diagnostic::Severity::kError,
                               table.error().at.value_or(out.recipe->position("engine.interface")),
                               table.error().detail, table.error().hint});
    return out;
  }
  for (auto& diagnostic : table->check(*out.recipe))
    out.diagnostics.push_back(std::move(diagnostic));
  out.table = std::move(*table);
  return out;
}

int run_check(const std::vector<std::string>& files, bool json) {
  bool all_ok = true;
  Json list = Json::array();
  std::string text;
  for (const auto& file : files) {
    const Checked checked = check(file);
    const bool ok = checked.recipe && !recipe::has_errors(checked.diagnostics);
    all_ok = all_ok && ok;
    Json entry = {{"file", file}, {"ok", ok}, {"diagnostics", Json::array()}};
    for (const auto& diagnostic : checked.diagnostics) {
      entry["diagnostics"].push_back(to_json(diagnostic));
      text += recipe::to_string(diagnostic) + "\n";
    }
    if (checked.recipe) {
      entry["digest"] = checked.recipe->digest();
      entry["unpinned"] = checked.recipe->unpinned();
      if (ok) {
        text += file + ": ok, digest " + checked.recipe->digest().substr(0, 16);
        const auto& unpinned = checked.recipe->unpinned();
        if (!unpinned.empty()) text += ", unpinned: " + base::join(unpinned, " ");
        text += "\n";
      }
    }
    list.push_back(std::move(entry));
  }
  const int printed = json ? print_json({{"ok", all_ok}, {"files", list}}) : print(text);
  return printed != base::kExitOk ? printed : all_ok ? base::kExitOk : base::kExitUsage;
}

int run_show(const std::string& file, bool json) {
  const Checked checked = check(file);
  if (!checked.recipe || recipe::has_errors(checked.diagnostics))
    return print_diagnostics(checked.diagnostics, json);
  const recipe::Recipe& recipe = *checked.recipe;
  const bool external = recipe.text("launch.runner") == "external";
  Json launch = nullptr;
  if (!external) {
    auto spec = engine::build_launch(recipe, *checked.table);
    if (!spec) return print_error(spec.error(), json);
    launch = engine::to_json(*spec);
  }
  if (json)
    return print_json({{"name", recipe.name()},
                       {"digest", recipe.digest()},
                       {"interface", checked.table->name()},
                       {"unpinned", recipe.unpinned()},
                       {"canonical", recipe.canonical()},
                       {"launch", launch},
                       {"url", external ? Json(recipe.text("launch.url")) : Json(nullptr)}});
  std::string text = "recipe     " + recipe.name() + "\ndigest     " + recipe.digest() +
                     "\ninterface  " + checked.table->name() + "\nunpinned   " +
                     (recipe.unpinned().empty() ? "nothing" : base::join(recipe.unpinned(), " ")) +
                     "\n";
  if (external) {
    text += "external   " + recipe.text("launch.url") + " (already running; nothing is started)\n";
  } else {
    text += "\ncommand\n ";
    for (const auto& word : launch["argv"])
      text += " " + base::shell_quote(word.get<std::string>());
    text += "\n";
    if (!launch["env"].empty()) text += "\nenvironment\n";
    for (const auto& [name, value] : launch["env"].items())
      text += "  " + name + "=" + base::shell_quote(value.get<std::string>()) + "\n";
    for (const auto& [name, reference] : launch["secrets"].items())
      text += "  " + name + " from " + reference.get<std::string>() + "\n";
  }
  text += "\ncanonical form\n" + base::pretty(recipe.canonical());
  return print(text);
}

// One line of at most 44 columns.
std::string shown(const Json& value) {
  std::string text = value.is_null()     ? "(not set)"
                     : value.is_string() ? value.get<std::string>()
                                         : base::canonical(value);
  const bool more = text.find('\n') != std::string::npos;
  text = text.substr(0, text.find('\n'));
  if (text.size() > 44) return text.substr(0, 20) + "..." + text.substr(text.size() - 20);
  return more ? text + " ..." : text;
}

int run_diff(const std::string& file_a, const std::string& file_b, bool json) {
  const Checked a = check(file_a);
  const Checked b = check(file_b);
  for (const Checked* side : {&a, &b})
    if (!side->recipe || !side->table) return print_diagnostics(side->diagnostics, json);
  const Json diff = recipe::diff(*a.recipe, *b.recipe, a.table->consequence_rules());
  if (json) return print_json(diff);
  std::string text = "a  " + a.recipe->name() + "  " + a.recipe->digest().substr(0, 16) + "\nb  " +
                     b.recipe->name() + "  " + b.recipe->digest().substr(0, 16) + "\n\n";
  if (diff["changed"].empty()) text += "no variable differs\n";
  std::vector<std::vector<std::string>> rows;
  for (const auto& variable : diff["changed"]) {
    rows.push_back({variable["variable"].get<std::string>()});
    for (const auto& field : variable["fields"])
      rows.push_back(
          {"  " + field["path"].get<std::string>(), shown(field["a"]), "->", shown(field["b"])});
  }
  if (!diff["consequences"].empty()) rows.push_back({"consequences"});
  for (const auto& item : diff["consequences"])
    rows.push_back({"  " + item["what"].get<std::string>(), shown(item["a"]), "->",
                    shown(item["b"]), item["because"].get<std::string>()});
  if (!diff["labels"].empty()) rows.push_back({"labels (not part of the identity)"});
  for (const auto& field : diff["labels"])
    rows.push_back(
        {"  " + field["path"].get<std::string>(), shown(field["a"]), "->", shown(field["b"])});
  text += table(rows);
  std::vector<std::string> unchanged = diff["unchanged"].get<std::vector<std::string>>();
  text += "\nunchanged: " + base::join(unchanged, ", ") + "\n";
  return print(text);
}

}  // namespace

void add_recipe(CLI::App& root, Context& context) {
  CLI::App* group = root.add_subcommand("recipe", "Check, show and compare recipes");
  group->require_subcommand(1);
  group->footer("Example:\n  anvil recipe check recipes/gemma-3-270m.toml");

  struct Options {
    std::vector<std::string> files;
    std::string a, b;
    bool json = false;
  };
  auto options = std::make_shared<Options>();

  CLI::App* check_command =
      group->add_subcommand("check", "Report everything that is wrong in recipe files");
  check_command->add_option("FILE", options->files, "Recipe files")->required();
  check_command->add_flag("--json", options->json, "One JSON object on stdout");
  check_command->footer(
      "Example:\n  anvil recipe check recipes/*.toml\n\nExit code 2 if any file has an error.");
  check_command->callback([options, &context] {
    context.command = [options] { return run_check(options->files, options->json); };
  });

  CLI::App* show_command = group->add_subcommand(
      "show", "Canonical form, digest, and the exact command line and environment");
  show_command->add_option("FILE", options->a, "Recipe file")->required();
  show_command->add_flag("--json", options->json, "One JSON object on stdout");
  show_command->footer("Example:\n  anvil recipe show recipes/gemma-3-270m.toml");
  show_command->callback([options, &context] {
    context.command = [options] { return run_show(options->a, options->json); };
  });

  CLI::App* diff_command = group->add_subcommand("diff", "Compare two recipes by variable");
  diff_command->add_option("A", options->a, "First recipe")->required();
  diff_command->add_option("B", options->b, "Second recipe")->required();
  diff_command->add_flag("--json", options->json, "One JSON object on stdout");
  diff_command->footer(
      "Example:\n  anvil recipe diff recipes/deepseek-v4-flash-r16-nospec-128k.toml "
      "recipes/deepseek-v4-flash-r16-dspark5-128k.toml");
  diff_command->callback([options, &context] {
    context.command = [options] { return run_diff(options->a, options->b, options->json); };
  });
}

}  // namespace anvil::app
