#pragma once

#include <torch/optim/optimizer.h>

#include <memory>

#include "adapters/adapter_types.h"
#include "adapters/collective/collective.h"
#include "adapters/collective/gradient_reducer.h"
#include "adapters/torch_types.h"

namespace dpwa {

// Horovod's DistributedOptimizer, around any optimizer of LibTorch. backward() averages the
// gradients of `module` over all ranks while it runs; step() waits for the average and then steps.
// The program itself broadcasts parameters and optimizer state before the first step. All three
// arguments outlive this object. One thread.
class DistributedOptimizer {
 public:
  DistributedOptimizer(Collective& collective, torch::nn::Module& module,
                       torch::optim::Optimizer& optimizer, const GradientOptions& options = {});

  void zero_grad() { optimizer_.zero_grad(); }
  // Samples in the next batch: the weight of this rank's gradients. 1 until the first call.
  void set_batch_size(std::uint64_t samples) { reducer_.set_samples(static_cast<double>(samples)); }
  // While the result lives, backward() adds to the gradients of this rank alone.
  [[nodiscard]] Accumulation accumulate();
  // For clipping: .grad holds the mean from backward() on; throws when a rank was lost.
  void synchronize();
  // Throws CollectiveError when a rank was lost; then nothing has been stepped.
  void step();
  // In place of step(), for one that all ranks skip, as where the mean is not finite.
  void skip_step();
  // For a rank that has no more data: takes part with zeros, and steps, until all ranks have called
  // it. Returns the lowest of the ranks that called it last.
  int join();

 private:
  collective::StepTally exchange(bool joined);

  torch::optim::Optimizer& optimizer_;
  collective::GradientReducer reducer_;
  bool synchronized_ = false;
  int last_at_work_ = 0;
};

}  // namespace dpwa
