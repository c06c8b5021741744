#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/worker/child.h"

namespace dpwa::bench {

struct NodeJob {
  Json job;
  bool pulls = true;  // otherwise it serves only
};

// Node processes that are measured together, window by window; idle in between.
class Group {
 public:
  // Starts the processes  and waits until all serve. Throws std::runtime_error.
  Group(const std::filesystem::path& program, const std::vector<NodeJob>& jobs);

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
