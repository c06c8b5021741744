#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>

#include "dpwa/parallel/largest_batch.h"

namespace dpwa {

struct BatchTrial {
  std::uint64_t batch = 0;
  bool fits = true;
  double bytes = 0;  // of the process at its peak, where it was measured; else 0
};

struct BatchSearchOptions {
  std::uint64_t limit = 65536;  // no batch is larger
  // Of resident memory of the process, in bytes, for a model in host memory. 0: until memory is
  // refused, as for a model on a GPU.
  double budget = 0;
  std::function<void(const BatchTrial&)> tried = [](const BatchTrial&) {};
};

struct BatchSearch {
  std::uint64_t largest = 0;  // that fits; 0: none does
  std::uint64_t usable = 0;   // 9/10 of it, rounded down; the limit where memory has that margin
  MemoryLine memory;          // in host memory: what a batch needs
};

// The largest batch that `step` can make: a whole step, with forward, backward and optimizer step,
// of a batch of so many samples. Without a budget: doubles until memory is refused, then bisects.
// With one, in host memory, where what is too much ends the process: measures small batches and
// takes the line through them to the budget. Afterwards model, gradients, optimizer and random
// generators are as they were, bit by bit, also when `step` throws, which is passed on unless
// memory was refused.
//
// Before the model is given to make_adapter. Each node finds its own; nodes that step together
// need the least of them, by Collective::allreduce for instance. Throws std::runtime_error where
// memory cannot be measured. One (training) thread.
BatchSearch find_largest_batch(torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                               const std::function<void(std::uint64_t)>& step,
                               const BatchSearchOptions& options);

}  // namespace dpwa
