#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "bench/commands.h"

namespace dpwa::bench {

// For the list of subcommands only, as `step`: a program of its own, since it needs LibTorch.
void add_collective_command(CLI::App& parent, CommandContext&) {
  parent.add_subcommand("collective",
                        "A step of backend collective beside DistributedDataParallel, and its "
                        "engines (needs LibTorch)");
}

}  // namespace dpwa::bench
