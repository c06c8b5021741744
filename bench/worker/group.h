#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/worker/child.h"

namespace CLI {
class App;
}

namespace dpwa::bench {

// The options that `pull` and `raw` share: the size of a pull, which node pulls from which, and for
// how long.
struct Topology {
  std::uint64_t bytes = 100'000'000;  // of parameters, a multiple of 4
  std::uint64_t pairs = 1;            // one node of a pair pulls, the other serves
  std::uint64_t all_pull = 0;  // instead of pairs: nodes that all pull, each from a random one
  double seconds = 3;
  bool ping_pong = false;  // measure latency alone: node i keeps to core i
  bool json = false;

  std::size_t nodes() const { return all_pull != 0 ? all_pull : 2 * pairs; }
  bool pulls(std::size_t node) const { return all_pull != 0 || node % 2 == 0; }
  // The node that `node` always pulls from; none: any.
  std::optional<std::size_t> partner(std::size_t node) const;
};

// --bytes, --pairs, --all-pull, --seconds, --json
void add_topology_options(CLI::App& command, Topology& topology);

struct NodeJob {
  Json job;
  bool pulls = true;  // otherwise it serves only
};

// What all nodes of a group together did in one window.
struct GroupWindow {
  std::uint64_t pulls = 0;
  std::uint64_t bytes = 0;
  double gb_per_s = 0;    // sum over the nodes that pull
  double cpu_s = 0;       // of all nodes
  double latency_us = 0;  // median over the nodes' medians
  double tcp_bytes = 0;   // received over TCP, framing included
  Json failed = Json::object();
};

// Node processes that are measured together, window by window; idle in between.
class Group {
 public:
  // Starts the processes (`program` worker) and waits until all serve. Throws std::runtime_error.
  Group(const std::filesystem::path& program, const std::vector<NodeJob>& jobs);

  // `record`: keep the latencies for the report.
  GroupWindow run(double seconds, bool record = true);
  // The same number of pulls by each node.
  GroupWindow run_times(std::uint64_t count, bool record = true);
  std::vector<Json> reports();                         // one per node
  double processor_seconds() { return mark().cpu_s; }  // of all nodes, so far

 private:
  struct Node {
    std::unique_ptr<Child> process;
    bool pulls;
  };
  struct Marks {
    double cpu_s = 0;
    double tcp_bytes = 0;
  };
  Marks mark();
  std::vector<Json> ask(const Json& command, bool pullers_only);
  GroupWindow run(const Json& command);

  std::vector<Node> nodes_;
};

}  // namespace dpwa::bench
