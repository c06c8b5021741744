#pragma once

#include <cstdint>
#include <functional>

#include "adapters/torch_types.h"
#include "dpwa/parallel/largest_batch.h"

namespace dpwa {

struct BatchTrial {
  std::uint64_t batch = 0;
  bool fits = true;
  double bytes = 0;  // of the process at its peak, where it was measured; else 0
};

struct BatchSearchOptions {
  std::uint64_t limit = 65536;  // no batch is larger
  // Bound on the resident memory of the process, in bytes, for a model in host memory. 0: none; the
  // search goes on until memory is refused, as for a model on a GPU.
  double budget = 0;
  std::function<void(const BatchTrial&)> tried = [](const BatchTrial&) {};
};

struct BatchSearch {
  std::uint64_t largest = 0;  // that fits; 0: none does
  std::uint64_t usable = 0;   // 9/10 of it, rounded down; the limit where memory has that margin
  MemoryLine memory;          // in host memory: what a batch needs
};

// The largest number of samples for which `step` fits into memory. `step` makes a whole step of a
// batch of that size: forward, backward, optimizer. Without a budget the size doubles until memory
// is refused, then the limit is found by bisection. With a budget (host memory, where a process
// that takes too much is killed) only small batches are measured, and the line through them is
// extended to the budget. Afterwards model, gradients, optimizer and random generators are restored
// bit by bit, also when `step` throws. Its exception is passed on unless memory was refused.
//
// Call it before the model is given to make_adapter. Each node finds its own size. Nodes that step
// together need the smallest, for instance by Collective::allreduce. Throws std::runtime_error when
// memory cannot be measured. One (training) thread.
BatchSearch find_largest_batch(torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                               const std::function<void(std::uint64_t)>& step,
                               const BatchSearchOptions& options);

}  // namespace dpwa
