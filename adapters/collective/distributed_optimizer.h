#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <memory>

#include "adapters/accumulation.h"
#include "adapters/collective/collective.h"
#include "adapters/collective/gradient_reducer.h"

namespace dpwa {

// Horovod's DistributedOptimizer, around any optimizer of LibTorch: backward() averages the
// gradients of `module` over all ranks while it runs, step() waits for that and then steps. The
// program broadcasts parameters and optimizer state itself, before the first step. All three
// outlive it. One thread.
class DistributedOptimizer {
 public:
  DistributedOptimizer(Collective& collective, torch::nn::Module& module,
                       torch::optim::Optimizer& optimizer,
                       const collective::ReducerOptions& options = {});

  void zero_grad() { optimizer_.zero_grad(); }
  // Samples in the next batch, by which this rank's gradients weigh; 1 until the first call.
  void set_batch_size(std::uint64_t samples) { reducer_.set_samples(static_cast<double>(samples)); }
  // While the result lives, backward() adds to the gradients of this rank alone.
  [[nodiscard]] Accumulation accumulate();
  // For clipping: .grad holds the mean from backward() on; throws when a rank was lost.
  void synchronize();
  // Throws CollectiveError when a rank was lost; then nothing has been stepped.
  void step();
  // For a rank that has no data any more: takes part with zeros, and steps, until all ranks have
  // come here; returns the lowest rank that was the last at work.
  int join();

 private:
  collective::StepTally exchange(bool joined);

  torch::optim::Optimizer& optimizer_;
  collective::GradientReducer reducer_;
  bool synchronized_ = false;
  int last_at_work_ = 0;
};

}  // namespace dpwa
