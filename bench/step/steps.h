#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/pull/pull_group.h"
#include "bench/step/hand_written.h"
#include "bench/worker/group.h"

namespace torch::nn {
class Module;
}
namespace dpwa {
class Adapter;
}

namespace dpwa::bench {

using TensorSizes = std::vector<std::pair<std::string, std::uint64_t>>;  // name, elements

// `parameters` in `tensors` parts as equal as they can be, named p0, p1, ...
TensorSizes tensor_sizes(std::uint64_t parameters, std::uint64_t tensors);

// Node w1, which is this process, and its peers in processes of their own, which serve that model
// and publish a new version whenever one was served. With `settings.daemon` this process is the
// trainer of w1 alone, and the network side is one more process.
class StepPeers {
 public:
  // Throws ConfigError when the settings are not accepted.
  StepPeers(const TensorSizes& tensors, std::size_t peers, const NodeSettings& settings);
  double processor_seconds() { return group_->processor_seconds(); }  // of the peers, so far
  std::string cluster_file() const { return file_->path(); }

 private:
  std::unique_ptr<ClusterFile> file_;
  std::unique_ptr<Group> group_;
};

// One training step, in microseconds.
struct StepTimes {
  double send = 0;                    // update_send
  double wait = 0;                    // update_wait
  bool arrived = false;               // a pull was blended in
  double waited = 0;                  // for the network
  std::uint64_t allocations = 0;      // by the trainer's thread, in the two halves
  std::uint64_t all_allocations = 0;  // by all threads meanwhile
};

// The hand-written passes, in microseconds, made right after a step so that the machine is the
// same.
struct HandTimes {
  std::vector<double> copy;
  std::vector<double> copy_and_blend;
  std::vector<double> blend_and_copy;
};

struct StepPlan {
  double seconds = 3;        // how long to measure
  double compute_us = 1000;  // a busy wait in place of forward and backward
};

// Runs steps of each adapter in turn, with a busy wait in place of the computation before each,
// and then the hand-written passes. Calls `on_progress` about once a second. The result has the
// steps of each adapter, as many of one as of another.
std::vector<std::vector<StepTimes>> run_steps(
    const std::vector<Adapter*>& adapters, const StepPlan& plan,
    std::vector<std::unique_ptr<HandWritten>>& loops, std::vector<HandTimes>& hand,
    const std::function<void(std::size_t steps)>& on_progress);

}  // namespace dpwa::bench
