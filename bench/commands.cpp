#include "bench/commands.h"

#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <exception>
#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "bench/quantity.h"
#include "bench/worker/child.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/base/version.h"
#include "dpwa/cli/help_format.h"
#include "dpwa/cli/usage_problem.h"
#include "dpwa/config/config.h"

namespace dpwa::bench {
namespace {

constexpr int failed = 1;
constexpr int wrong_usage = 2;

// Becomes dpwa-bench-COMMAND, which lies beside this program where LibTorch was there to build it.
int hand_over(const std::string& command, char** arguments, std::ostream& err) {
  const std::string program = (program_folder() / ("dpwa-bench-" + command)).string();
  ::execv(program.c_str(), arguments);
  err << "dpwa-bench: " << command << " needs LibTorch, and this build has none (there is no "
      << program << ")\n";
  return wrong_usage;
}

// For the list of subcommands only: run() hands these over before it parses anything.
void list_programs_with_torch(CLI::App& app) {
  app.add_subcommand("step", "What adapter->step adds to a training step (needs LibTorch)");
  app.add_subcommand("collective",
                     "A step of backend collective beside DistributedDataParallel, and its "
                     "engines (needs LibTorch)");
}

int parse_and_run(int argc, char** argv, std::ostream& out, std::ostream& err) {
  CLI::App app("Measures dpwa side by side with the limits of the machine.", "dpwa-bench");
  app.require_subcommand(1);
  cli::format_help(app);
  CommandContext context{out, err};
  add_memory_command(app, context);
  add_raw_command(app, context);
  add_pull_command(app, context);
  list_programs_with_torch(app);
  add_kvstore_command(app, context);
  add_choice_command(app, context);
  add_worker_command(app, context);
  cli::add_version(app, "dpwa-bench " + std::string(version()));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, out, err);  // --help, --version
    err << "dpwa-bench: " << cli::usage_problem(app, error) << " (see " << cli::help_of(app)
        << ")\n";
    return wrong_usage;
  }
  return context.exit_code;
}

using Parse = std::function<std::optional<std::uint64_t>(std::string_view)>;

CLI::Option* add_parsed(CLI::App& app, const std::string& name, std::uint64_t& target,
                        const std::string& description, const Parse& parse,
                        const std::string& accepted) {
  const auto take = [&target, name, parse, accepted](const std::string& text) {
    const auto value = parse(text);
    if (!value) throw CLI::ValidationError(name, "'" + text + "' is not " + accepted);
    target = *value;
  };
  return app.add_option_function<std::string>(name, take, description);
}

}  // namespace

int run(int argc, char** argv, std::ostream& out, std::ostream& err) {
  try {
    const std::string command = argc > 1 ? argv[1] : "";
    if (command == "step" || command == "collective") return hand_over(command, argv + 1, err);
    const int exit_code = parse_and_run(argc, argv, out, err);
    if (out.flush()) return exit_code;
    err << "dpwa-bench: cannot write the result\n";
  } catch (const ConfigError& error) {
    err << "dpwa-bench: " << one_line(error) << '\n';
    return wrong_usage;
  } catch (const std::exception& error) {
    err << "dpwa-bench: " << one_line(error) << '\n';
  }
  return failed;
}

CLI::Option* add_size_option(CLI::App& app, const std::string& name, std::uint64_t& target,
                             const std::string& description) {
  return add_parsed(app, name, target, description, parse_size,
                    "a size such as 200, 10KB, 100MB (powers of 1000) or 64MiB (of 1024)")
      ->type_name("SIZE")
      ->default_str(size_text(target));
}

CLI::Option* add_count_option(CLI::App& app, const std::string& name, std::uint64_t& target,
                              const std::string& description) {
  return add_parsed(app, name, target, description, parse_count, "a count such as 500, 100k, 10M")
      ->type_name("COUNT")
      ->default_str(std::to_string(target));
}

}  // namespace dpwa::bench
