#include "dpwa/cli/app.h"

#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "dpwa/base/plain_text.h"
#include "dpwa/base/version.h"
#include "dpwa/cli/usage.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/config.h"

namespace dpwa::cli {
namespace {

constexpr int failed = 1;
constexpr int wrong_usage = 2;

void add_commands(CLI::App& app, CommandContext& context) {
  add_init_command(app, context);
  add_config_command(app, context);
  add_completion_command(app, context);
  add_keygen_command(app, context);
  add_process_commands(app, context);
  add_status_command(app, context);
  add_dashboard_command(app, context);
  add_export_command(app, context);
  add_doctor_command(app, context);
  add_top_command(app, context);
  add_trace_command(app, context);
  add_why_command(app, context);
}

int parse_and_run(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  CLI::App app(
      "Data-parallel training of LibTorch models. Back ends of a cluster file:\n"
      "gossip (averages parameters, without a barrier), collective (all-reduce of\n"
      "gradients), kvstore (parameter servers), null (one node alone).",
      "dpwa");
  app.require_subcommand(1);
  format_help(app);
  CommandContext context{out, err};
  const char* terminal = std::getenv("TERM");
  context.terminal = &out == &std::cout && ::isatty(STDOUT_FILENO) != 0 && terminal != nullptr &&
                     std::string(terminal) != "dumb";
  add_commands(app, context);
  add_version(app, "dpwa " + std::string(version()) + " (back ends: " + available_backends() + ")");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, out, err);  // --help, --version
    err << "dpwa: " << usage_problem(app, error) << " (see " << help_of(app) << ")\n";
    return wrong_usage;
  }
  return context.exit_code;
}

}  // namespace

int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  try {
    const int exit_code = parse_and_run(argc, argv, out, err);
    if (out.flush()) return exit_code;
    err << "dpwa: cannot write the result\n";
  } catch (const ConfigError& error) {
    err << one_line(error) << '\n';
    return wrong_usage;
  } catch (const std::exception& error) {
    err << "dpwa: " << one_line(error) << '\n';
  }
  return failed;
}

}  // namespace dpwa::cli
