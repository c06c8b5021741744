#pragma once

#include <iosfwd>

namespace CLI {
class App;
}

namespace dpwa::cli {

// The program `dpwa`: parses the arguments, runs the subcommand, and returns the exit code: 0 done,
// 1 failed while running, 2 wrong usage or configuration. Results go to `out`, human text to `err`.
// No exception escapes.
int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

// The context of a subcommand. It lives until the command has run.
struct CommandContext {
  std::ostream& out;      // results
  std::ostream& err;      // human text
  bool terminal = false;  // `out` is a terminal, which may be cleared
  int exit_code = 0;      // set by the subcommand; 0 = done
};

// Each adds subcommands to `parent`. A subcommand runs as its callback while the arguments are
// parsed; wrong usage throws CLI::ValidationError and a bad cluster file ConfigError (both end with
// exit code 2), any other exception is a failure (1).
void add_init_command(CLI::App& parent, CommandContext& context);
void add_config_command(CLI::App& parent, CommandContext& context);
void add_completion_command(CLI::App& parent, CommandContext& context);
void add_keygen_command(CLI::App& parent, CommandContext& context);
void add_process_commands(CLI::App& parent, CommandContext& context);  // node, kvserver
void add_dashboard_command(CLI::App& parent, CommandContext& context);
void add_export_command(CLI::App& parent, CommandContext& context);
void add_status_command(CLI::App& parent, CommandContext& context);
void add_doctor_command(CLI::App& parent, CommandContext& context);
void add_top_command(CLI::App& parent, CommandContext& context);
void add_trace_command(CLI::App& parent, CommandContext& context);
void add_why_command(CLI::App& parent, CommandContext& context);

}  // namespace dpwa::cli
