#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace dpwa::bench {

// The program `dpwa-bench`: parses the arguments, runs the subcommand, and returns the exit code: 0
// done, 1 failed while running, 2 wrong usage. Results go to `out`,
// human text to `err`. No exception escapes.
int run(int argc, char** argv, std::ostream& out, std::ostream& err);

// The context of a subcommand. It lives until the command has run.
struct CommandContext {
  std::ostream& out;  // results
  std::ostream& err;  // human text
  int exit_code = 0;  // set by the subcommand; 0 = done
};

// Each adds one subcommand to `parent`, which runs as its callback while the arguments are parsed.
// Wrong usage throws CLI::ValidationError and ConfigError (exit code 2), any other exception is a
// failure (1).
void add_choice_command(CLI::App& parent, CommandContext& context);
void add_memory_command(CLI::App& parent, CommandContext& context);
void add_raw_command(CLI::App& parent, CommandContext& context);
void add_pull_command(CLI::App& parent, CommandContext& context);
void add_kvstore_command(CLI::App& parent, CommandContext& context);
void add_worker_command(CLI::App& parent, CommandContext& context);  // hidden

// Options that take a size ("100MB", "64MiB") or a count ("10M"), above zero.
CLI::Option* add_size_option(CLI::App& app, const std::string& name, std::uint64_t& target,
                             const std::string& description);
CLI::Option* add_count_option(CLI::App& app, const std::string& name, std::uint64_t& target,
                              const std::string& description);

}  // namespace dpwa::bench
