#include "dpwa/cli/app.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <exception>
#include <ostream>
#include <string>
#include <vector>

#include "dpwa/cli/commands.h"
#include "dpwa/config/config.h"
#include "dpwa/config/nearest_key.h"
#include "dpwa/config/text.h"
#include "dpwa/version.h"

namespace dpwa::cli {
namespace {

constexpr int failed = 1;
constexpr int wrong_usage = 2;

// CLI11 reports an unknown subcommand as a missing one: says instead which word was not understood.
std::string usage_problem(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  const std::vector<std::string> rest = command->remaining();
  if (error.get_name() != "RequiredError" || rest.empty() || rest.front().starts_with('-')) {
    return config::one_line(error.what());
  }
  std::vector<std::string> known;
  for (const CLI::App* one : command->get_subcommands({})) known.push_back(one->get_name());
  if (known.empty()) return error.what();
  return "unknown subcommand " + config::shown(rest.front()) + "," +
         config::suggestion(rest.front(), known) + " accepted: " + config::joined(known);
}

int parse_and_run(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  CLI::App app("Barrier-free data-parallel training by gossip averaging.", "dpwa");
  app.set_version_flag("--version", "dpwa " + std::string(version()), "Print the version and exit");
  app.require_subcommand(1);
  CommandContext context{out, err};
  add_commands(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, out, err);  // --help, --version
    err << "dpwa: " << usage_problem(app, error) << " (see dpwa --help)\n";
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
    err << error.what() << '\n';
    return wrong_usage;
  } catch (const std::exception& error) {
    err << "dpwa: " << error.what() << '\n';
  }
  return failed;
}

}  // namespace dpwa::cli
