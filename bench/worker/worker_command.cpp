#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "bench/commands.h"
#include "bench/worker/worker.h"

namespace dpwa::bench {

void add_worker_command(CLI::App& parent, CommandContext& context) {
  CLI::App* command = parent.add_subcommand("worker", "One node of a measurement");
  command->group("");  // not shown
  command->callback([&context] { context.exit_code = run_worker(); });
}

}  // namespace dpwa::bench
