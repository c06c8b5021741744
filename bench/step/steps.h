#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "bench/step/hand_written.h"

namespace torch::nn {
class Module;
}
namespace dpwa {
class Adapter;
}

namespace dpwa::bench {

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

// Trains without training: steps of `adapter` with a wait in place of the computation, and the
// hand-written passes in turn. `on_progress` is called about once a second.
std::vector<StepTimes> run_steps(Adapter& adapter, const StepPlan& plan,
                                 std::vector<std::unique_ptr<HandWritten>>& loops,
                                 std::vector<HandTimes>& hand,
                                 const std::function<void(std::size_t steps)>& on_progress);

}  // namespace dpwa::bench
