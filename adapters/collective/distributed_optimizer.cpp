#include "adapters/collective/distributed_optimizer.h"

#include "adapters/collective/model_terms.h"
#include "adapters/common/module_tensors.h"

namespace dpwa {

DistributedOptimizer::DistributedOptimizer(Collective& collective, torch::nn::Module& module,
                                           torch::optim::Optimizer& optimizer,
                                           const collective::ReducerOptions& options)
    : optimizer_(optimizer), reducer_(trained_parameters(module), collective.group(), options) {
  reducer_.set_shared_buffers(collective::shared_buffers(module));
}

Accumulation DistributedOptimizer::accumulate() {
  reducer_.set_accumulating(true);
  return Accumulation([this] { reducer_.set_accumulating(false); });
}

collective::StepTally DistributedOptimizer::exchange(bool joined) {
  if (!reducer_.done()) reducer_.contribute(joined);
  const auto result = reducer_.end_step();
  if (result->error) throw collective::CollectiveError(*result->error);
  if (result->tally->first_at_work >= 0) last_at_work_ = result->tally->first_at_work;
  return *result->tally;
}

void DistributedOptimizer::synchronize() {
  if (synchronized_) return;
  exchange(/*joined=*/false);
  synchronized_ = true;
}

void DistributedOptimizer::step() {
  skip_step();
  optimizer_.step();
}

void DistributedOptimizer::skip_step() {
  synchronize();
  synchronized_ = false;
}

// The gradients of those at work arrive here as well, so the models stay the same.
int DistributedOptimizer::join() {
  while (true) {
    const collective::StepTally tally = exchange(/*joined=*/true);
    if (tally.first_at_work < 0) return last_at_work_;
    optimizer_.step();
  }
}

}  // namespace dpwa
