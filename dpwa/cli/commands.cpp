#include "dpwa/cli/commands.h"

namespace dpwa::cli {

void add_commands(CLI::App& app, CommandContext& context) {
  add_init_command(app, context);
  add_config_command(app, context);
  add_completion_command(app, context);
  add_keygen_command(app, context);
  add_node_command(app, context);
  add_status_command(app, context);
}

}  // namespace dpwa::cli
