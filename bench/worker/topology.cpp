#include "bench/worker/topology.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "bench/commands.h"

namespace dpwa::bench {

std::optional<std::size_t> Topology::partner(std::size_t node) const {
  if (all_pull != 0) return std::nullopt;
  return node % 2 == 0 ? node + 1 : node - 1;
}

void add_topology_options(CLI::App& command, Topology& topology) {
  add_size_option(command, "--bytes", topology.bytes, "Size of the float32 parameters");
  CLI::Option* pairs =
      command.add_option("--pairs", topology.pairs, "Pairs of nodes, one of which pulls")
          ->check(CLI::Range(1, 32))
          ->capture_default_str();
  command.add_option("--all-pull", topology.all_pull, "Nodes that all pull from each other")
      ->check(CLI::Range(2, 64))
      ->excludes(pairs);
  command.add_option("--seconds", topology.seconds, "How long to measure")
      ->check(CLI::Range(0.01, 600.0))
      ->capture_default_str();
  command.add_flag("--json", topology.json, "Print one JSON document instead of text");
}

}  // namespace dpwa::bench
