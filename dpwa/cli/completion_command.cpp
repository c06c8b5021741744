#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "dpwa/cli/app.h"
#include "dpwa/cli/usage.h"

namespace dpwa::cli {
namespace {

// Completes the command lines of all programs by what each says in its --help.
constexpr const char* script =
    R"sh(# Completion for dpwa, dpwa-train and dpwa-bench, written by: dpwa completion SHELL

# The text of PROGRAM [SUBCOMMAND]... --help, asked once in a shell.
typeset -gA _dpwa_helps
_dpwa_help() {
  if [[ -z ${_dpwa_helps[$*]} ]]; then
    _dpwa_helps[$*]=$("$@" --help 2>/dev/null </dev/null)
  fi
  REPLY=${_dpwa_helps[$*]}
}

# The words that the option or the positional argument of this pattern accepts: a|b, {a,b}.
_dpwa_values() {
  sed -nE "s/^ +$1 (TEXT:\{)?([a-z0-9_]+([|,][a-z0-9_:]+[A-Z]*)+).*/\3/p" <<<"$2" | tr '|,' '  ' | tr -d 'A-Z'
}

_dpwa() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} help subcommands words i REPLY
  local command=("${COMP_WORDS[0]}")
  COMPREPLY=()
  for ((i = 0; i < COMP_CWORD; i++)); do
    if ((i > 0)); then
      [[ " $subcommands " == *" ${COMP_WORDS[i]} "* ]] || continue
      command+=("${COMP_WORDS[i]}")
    fi
    _dpwa_help "${command[@]}"
    help=$REPLY
    subcommands=$(sed -nE '/^Subcommands:/,$s/^  ([a-z]+) .*/\1/p' <<<"$help" | tr '\n' ' ')
  done
  if [[ $current == -* ]]; then
    words=$(sed -nE 's/^ +(-[a-zA-Z],)?(--[a-z-]+).*/\2/p' <<<"$help")
  elif [[ $previous == -* ]] && sed -E 's/ (Needs|Excludes): .*//' <<<"$help" |
      grep -qE "^ +(-[a-zA-Z],)?$previous(,--[a-z-]+)? [^ ]"; then
    words=$(_dpwa_values "(-[a-zA-Z],)?$previous" "$help")
  else
    words="$subcommands $(_dpwa_values '([A-Z]+)' "$help")"
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}

complete -o default -F _dpwa dpwa dpwa-train dpwa-bench
)sh";

// zsh runs the same by its emulation of bash's completion.
constexpr const char* for_zsh =
    "autoload -U +X compinit && compinit -u\nautoload -U +X bashcompinit && bashcompinit\n";

}  // namespace

void add_completion_command(CLI::App& parent, CommandContext& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = parent.add_subcommand(
      "completion", "Print the shell completion of these programs for bash or zsh");
  command->add_option("SHELL", *shell, "bash or zsh")->required()->check(one_of({"bash", "zsh"}));
  command->footer("To use it in this shell: source <(dpwa completion bash)");
  command->callback(
      [shell, &context] { context.out << (*shell == "zsh" ? for_zsh : "") << script; });
}

}  // namespace dpwa::cli
