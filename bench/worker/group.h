#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/worker/child.h"

namespace dpwa::bench {

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

  std::vector<Node> nodes_;
};

}  // namespace dpwa::bench
