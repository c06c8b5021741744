#include <CLI/App.hpp>

#include "dpwa/cli/commands.h"

namespace dpwa::cli {

void add_config_command(CLI::App& parent, CommandContext& context) {
  CLI::App* command = parent.add_subcommand("config", "Look into a cluster file");
  command->require_subcommand(1);
  add_config_check_command(*command, context);
  add_config_keys_command(*command, context);
  add_config_nodes_command(*command, context);
}

}  // namespace dpwa::cli
