#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "bench/commands.h"

namespace dpwa::bench {

// For the list of subcommands only: run() hands `step` over to a program of its own before it
// parses anything, since that one alone needs LibTorch.
void add_step_command(CLI::App& parent, CommandContext&) {
  parent.add_subcommand("step", "What adapter->step adds to a training step (needs LibTorch)");
}

}  // namespace dpwa::bench
