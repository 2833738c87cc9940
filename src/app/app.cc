#include "app/app.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "base/strings.h"
#include "base/version.h"

namespace anvil::app {

namespace {

// The deepest sub-command that the command line reached.
const CLI::App* deepest(const CLI::App& root) {
  const CLI::App* at = &root;
  for (;;) {
    const auto parsed = at->get_subcommands();
    if (parsed.empty()) return at;
    at = parsed.front();
  }
}

std::vector<std::string> words_of(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; }))
    words.push_back(sub->get_name());
  for (const CLI::Option* option : command.get_options())
    for (const auto& long_name : option->get_lnames()) words.push_back("--" + long_name);
  return words;
}

// "anvil qualify"
std::string full_name(const CLI::App& command) {
  std::string name = command.get_name();
  for (const CLI::App* parent = command.get_parent(); parent; parent = parent->get_parent())
    name = parent->get_name() + " " + name;
  return name;
}

int usage_error(const CLI::App& root, const CLI::ParseError& error, int argc, char** argv) {
  const CLI::App* command = deepest(root);
  std::string message = error.what();
  std::string suggestion;
  const auto words = words_of(*command);
  std::vector<std::string> extras = command->remaining(true);
  if (extras.empty() && error.get_name() == "ExtrasError")
    for (int i = 1; i < argc; ++i) extras.emplace_back(argv[i]);
  if (command == &root && extras.empty() && argc > 1 && argv[1][0] != '-')
    extras.emplace_back(argv[1]);
  for (const auto& extra : extras) {
    const std::string word = extra.substr(0, extra.find('='));
    if (std::find(words.begin(), words.end(), word) != words.end()) continue;
    message = (word.starts_with("-") ? "unknown option " : "unexpected argument ") + word;
    if (const auto near = base::did_you_mean(word, words))
      suggestion = "did you mean " + *near + "?";
    break;
  }
  std::fprintf(stderr, "anvil: %s%s%s\n", message.c_str(), suggestion.empty() ? "" : "; ",
               suggestion.c_str());
  std::fprintf(stderr, "Run '%s --help' for usage and an example.\n", full_name(*command).c_str());
  return base::kExitUsage;
}

// The first option whose number is none: "nan" and "inf" pass every range check.
std::string not_a_number(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_type_name().find("FLOAT") == std::string::npos) continue;
    for (const std::string& text : option->results())
      if (!std::isfinite(std::strtod(text.c_str(), nullptr)))
        return option->get_name() + " wants a number, not \"" + text + "\"";
  }
  return "";
}

int run_command(int argc, char** argv) {
  CLI::App root(
      "Anvil takes a recipe for serving a large language model on your own hardware to evidence "
      "and a decision.",
      "anvil");
  Context context;
  root.set_version_flag(
      "--version", [] { return "anvil " + base::version() + " (build " + base::build_id() + ")"; });
  root.require_subcommand(1);
  root.footer(
      "Example:\n"
      "  anvil qualify recipes/gemma-3-270m.toml --policy policies/quickstart.toml\n\n"
      "Exit codes: 0 ok, 1 a gate or check failed, 2 usage or bad input, 3 environment, 4 "
      "internal.");
  add_recipe(root, context);
  add_qualify(root, context);
  add_bench(root, context);
  add_ab(root, context);
  add_calibrate(root, context);
  add_engine(root, context);
  add_runs(root, context);
  add_verify(root, context);
  add_report(root, context);
  add_evidence(root, context);
  add_doctor(root, context);
  add_completion(root, context);
  try {
    root.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0)
      return root.exit(error) == 0 ? base::kExitOk : base::kExitInternal;
    return usage_error(root, error, argc, argv);
  }
  if (const std::string wrong = not_a_number(*deepest(root)); !wrong.empty()) {
    std::fprintf(stderr, "anvil: %s\n", wrong.c_str());
    return base::kExitUsage;
  }
  base::cancel_on_signals(context.cancel);
  return context.command ? context.command() : base::kExitInternal;
}

}  // namespace

int run(int argc, char** argv) {
  try {
    return run_command(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(
        stderr,
        "anvil: internal error: %s; this is a bug, please report it with the command line\n",
        error.what());
    return base::kExitInternal;
  }
}

}  // namespace anvil::app
