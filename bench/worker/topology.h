#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace CLI {
class App;
}

namespace dpwa::bench {

// What `pull` and `raw` have in common: how much is pulled, who pulls from whom, for how long.
struct Topology {
  std::uint64_t bytes = 100'000'000;  // of parameters, a multiple of 4
  std::uint64_t pairs = 1;            // one node of a pair pulls, the other serves
  std::uint64_t all_pull = 0;  // instead of pairs: nodes that all pull, each from a random one
  double seconds = 3;
  bool json = false;

  std::size_t nodes() const { return all_pull != 0 ? all_pull : 2 * pairs; }
  bool pulls(std::size_t node) const { return all_pull != 0 || node % 2 == 0; }
  // The node that `node` always pulls from; none: any.
  std::optional<std::size_t> partner(std::size_t node) const;
};

// --bytes, --pairs, --all-pull, --seconds, --json
void add_topology_options(CLI::App& command, Topology& topology);

}  // namespace dpwa::bench
