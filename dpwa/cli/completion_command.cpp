#include <CLI/App.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "dpwa/cli/commands.h"
#include "dpwa/cli/completion.h"

namespace dpwa::cli {

void add_completion_command(CLI::App& parent, CommandContext& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = parent.add_subcommand(
      "completion", "Print the completion of these programs for a shell: bash or zsh");
  command->add_option("SHELL", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  command->footer("Put it to use in this shell: source <(dpwa completion bash)");
  command->callback([shell, &parent, &context] {
    context.out << (*shell == "zsh" ? zsh_completion(parent) : bash_completion(parent));
  });
}

}  // namespace dpwa::cli
