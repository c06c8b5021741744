#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "dpwa/cli/app.h"

namespace dpwa::cli {
namespace {

constexpr const char* script_head =
    R"(# Completion for dpwa, dpwa-train and dpwa-bench, written by: dpwa completion SHELL

# The text of PROGRAM [SUBCOMMAND] --help, asked once in a shell.
typeset -gA _dpwa_helps
_dpwa_help() {
  if [[ -z ${_dpwa_helps[$*]} ]]; then
    _dpwa_helps[$*]=$("$@" --help 2>/dev/null </dev/null)
  fi
  REPLY=${_dpwa_helps[$*]}
}

# For a program that says in its --help what it takes.
_dpwa_by_help() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words help REPLY
  COMPREPLY=()
  _dpwa_help "${COMP_WORDS[0]}"
  words=$(sed -nE '/^Subcommands:/,$s/^  ([a-z]+) .*/\1/p' <<<"$REPLY")
  if [[ -n $words && $COMP_CWORD -gt 1 ]]; then
    _dpwa_help "${COMP_WORDS[0]}" "${COMP_WORDS[1]}"
    words=
  fi
  help=$REPLY
  if [[ $previous == --* ]]; then
    words=$(sed -nE "s/^ +(-[a-zA-Z],)?$previous (TEXT:\{)?([a-z0-9_]+([|,][a-z0-9_:]+[A-Z]*)+).*/\3/p" <<<"$help" |
      tr '|,' '  ' | tr -d 'A-Z')
    [[ -z $words ]] || COMPREPLY=($(compgen -W "$words" -- "$current"))
    [[ -z $words ]] && grep -qE "^ +(-[a-zA-Z],)?$previous [^ ]" <<<"$help" && return
    [[ -n $words ]] && return
  fi
  if [[ -z $words || $current == -* ]]; then
    words=$(sed -nE 's/^ +(-[a-zA-Z],)?(--[a-z-]+).*/\2/p' <<<"$help")
    [[ $current == -* ]] || return
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}

_dpwa() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= words= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command:${COMP_WORDS[i]}" in
)";

constexpr const char* script_tail = R"(  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}

complete -o default -F _dpwa dpwa
complete -o default -F _dpwa_by_help dpwa-train
complete -o default -F _dpwa_by_help dpwa-bench
)";

struct Command {
  std::string path;  // "", "config", "config check"
  const CLI::App* app;
};

void collect(const CLI::App& app, const std::string& path, std::vector<Command>& commands) {
  commands.push_back({path, &app});
  for (const CLI::App* one : app.get_subcommands({})) {
    if (one->get_group().empty()) continue;  // hidden
    collect(*one, (path.empty() ? "" : path + ' ') + one->get_name(), commands);
  }
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back('-' + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_min() > 0;
}

// The accepted words of an option, from its type "TEXT:{a,b}"; none: anything.
std::string values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto open = type.find('{');
  const auto close = type.find('}', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return {};
  std::string words = type.substr(open + 1, close - open - 1);
  std::ranges::replace(words, ',', ' ');
  return words;
}

// A command without subcommands or words of its own, which may be given a file.
bool takes_files(const CLI::App& app) {
  const auto is_word = [](const CLI::Option* option) {
    return option->get_lnames().empty() && !values_of(*option).empty();
  };
  return app.get_subcommands({}).empty() && std::ranges::none_of(app.get_options(), is_word);
}

std::string words_of(const CLI::App& app) {
  std::string words;
  for (const CLI::App* one : app.get_subcommands({})) {
    if (!one->get_group().empty()) words += one->get_name() + ' ';
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() && !values_of(*option).empty())
      words += values_of(*option) + ' ';  // of a positional; options come last in the script
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words += "--" + name + ' ';
  }
  if (!words.empty()) words.pop_back();
  return words;
}

// A script for bash that completes the command lines of `app` and of the programs beside it. The
// options of `app` come from its parser. The script asks the other programs with --help when it
// runs.
std::string script(const CLI::App& app) {
  std::vector<Command> commands;
  collect(app, "", commands);
  std::string text = script_head;
  for (const Command& command : commands) {
    if (command.path.empty()) continue;
    const auto space = command.path.rfind(' ');
    const std::string around = space == std::string::npos ? "" : command.path.substr(0, space);
    text += "      '" + around + ':' + command.app->get_name() + "') command='" + command.path +
            "' ;;\n";
  }
  text += "    esac\n  done\n  case \"$command:$previous\" in\n";
  for (const Command& command : commands) {
    for (const CLI::Option* option : command.app->get_options()) {
      if (!takes_value(*option)) continue;
      const std::string values = values_of(*option);
      for (const std::string& name : names_of(*option)) {
        text += "    '" + command.path + ':' + name + "') ";
        text += values.empty() ? std::string("return ;;\n") : "words='" + values + "' ;;\n";
      }
    }
  }
  text += "    *)\n      case \"$command\" in\n";
  for (const Command& command : commands) {
    text += "        '" + command.path + "') words='" + words_of(*command.app) + "' ;;\n";
  }
  text +=
      "      esac\n      # Of a command that takes files, only what begins with a dash is an "
      "option.\n"
      "      case \"$command\" in\n";
  for (const Command& command : commands) {
    if (takes_files(*command.app))
      text += "        '" + command.path + "') [[ $current == -* ]] || return ;;\n";
  }
  return text + "      esac\n      [[ $current == -* ]] || words=${words%% --*}\n      ;;\n" +
         script_tail;
}

// The same script: zsh runs it by its emulation of bash's completion.
std::string zsh_script(const CLI::App& app) {
  return "autoload -U +X compinit && compinit -u\nautoload -U +X bashcompinit && bashcompinit\n" +
         script(app);
}

}  // namespace

void add_completion_command(CLI::App& parent, CommandContext& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = parent.add_subcommand(
      "completion", "Print the shell completion of these programs for bash or zsh");
  command->add_option("SHELL", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  command->footer("To use it in this shell: source <(dpwa completion bash)");
  command->callback([shell, &parent, &context] {
    context.out << (*shell == "zsh" ? zsh_script(parent) : script(parent));
  });
}

}  // namespace dpwa::cli
