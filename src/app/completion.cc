#include <CLI/CLI.hpp>

#include "app/app.h"
#include "base/strings.h"

namespace anvil::app {

namespace {

// One command of the tree as completion needs it.
struct Node {
  std::string path;  // "anvil recipe check"; words joined by single spaces
  std::vector<std::pair<std::string, std::string>> subcommands;  // name, description
  std::vector<std::pair<std::string, std::string>> options;      // "--json", description
};

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

void collect(const CLI::App& command, const std::string& path, std::vector<Node>& nodes) {
  Node node{path, {}, {}};
  for (const CLI::Option* option : command.get_options())
    for (const auto& name : option->get_lnames())
      node.options.emplace_back("--" + name, first_line(option->get_description()));
  const auto subcommands = command.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* sub : subcommands)
    node.subcommands.emplace_back(sub->get_name(), first_line(sub->get_description()));
  nodes.push_back(std::move(node));
  for (const CLI::App* sub : subcommands) collect(*sub, path + " " + sub->get_name(), nodes);
}

std::string words(const Node& node) {
  std::string out;
  for (const auto& [name, text] : node.subcommands) out += " " + name;
  for (const auto& [name, text] : node.options) out += " " + name;
  return out.empty() ? out : out.substr(1);
}

std::string bash(const std::vector<Node>& nodes) {
  std::string out =
      "_anvil() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} path=anvil word words\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"$path $word\" in\n";
  for (const auto& node : nodes)
    if (node.path != "anvil") out += "      '" + node.path + "') path='" + node.path + "' ;;\n";
  out += "    esac\n  done\n  case \"$path\" in\n";
  for (const auto& node : nodes) out += "    '" + node.path + "') words='" + words(node) + "' ;;\n";
  out +=
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\") $(compgen -f -- \"$current\"))\n"
      "}\n"
      "complete -o filenames -F _anvil anvil\n";
  return out;
}

std::string zsh(const std::vector<Node>& nodes) {
  std::string out =
      "#compdef anvil\n"
      "_anvil() {\n"
      "  local command=anvil word\n"
      "  local -a entries\n"
      "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
      "    case \"$command $word\" in\n";
  for (const auto& node : nodes)
    if (node.path != "anvil") out += "      '" + node.path + "') command='" + node.path + "' ;;\n";
  out += "    esac\n  done\n  case \"$command\" in\n";
  const auto entry = [](const std::pair<std::string, std::string>& item) {
    return " " + base::shell_quote(base::replace_all(item.first, ":", "\\:") + ":" + item.second);
  };
  for (const auto& node : nodes) {
    out += "    '" + node.path + "') entries=(";
    for (const auto& item : node.subcommands) out += entry(item);
    for (const auto& item : node.options) out += entry(item);
    out += ") ;;\n";
  }
  out +=
      "  esac\n"
      "  _describe -t commands anvil entries\n"
      "  _files\n"
      "}\n"
      "if [ \"$funcstack[1]\" = _anvil ]; then _anvil \"$@\"; else compdef _anvil anvil; fi\n";
  return out;
}

std::string fish(const std::vector<Node>& nodes) {
  std::string out = "complete -c anvil -e\n";
  for (const auto& node : nodes) {
    auto parts = base::split(node.path, ' ');
    std::string condition;
    if (parts.size() == 1) {
      condition = "__fish_use_subcommand";
    } else {
      for (size_t i = 1; i < parts.size(); ++i)
        condition += (i > 1 ? "; and " : "") + std::string("__fish_seen_subcommand_from ") +
                     std::string(parts[i]);
      if (!node.subcommands.empty()) {
        condition += "; and not __fish_seen_subcommand_from";
        for (const auto& [name, text] : node.subcommands) condition += " " + name;
      }
    }
    const std::string prefix = "complete -c anvil -n '" + condition + "' ";
    for (const auto& [name, text] : node.subcommands)
      out += prefix + "-f -a " + name + " -d " + base::shell_quote(text) + "\n";
    for (const auto& [name, text] : node.options)
      out += prefix + "-l " + name.substr(2) + " -d " + base::shell_quote(text) + "\n";
  }
  return out;
}

}  // namespace

void add_completion(CLI::App& root, Context& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = root.add_subcommand("completion", "Print the completion script of a shell");
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer("Example:\n  source <(anvil completion bash)");
  command->callback([shell, &root, &context] {
    context.command = [shell, &root] {
      std::vector<Node> nodes;
      collect(root, "anvil", nodes);
      return print(*shell == "bash" ? bash(nodes) : *shell == "zsh" ? zsh(nodes) : fish(nodes));
    };
  });
}

}  // namespace anvil::app
