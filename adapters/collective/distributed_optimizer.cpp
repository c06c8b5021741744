#include "adapters/collective/distributed_optimizer.h"

namespace dpwa {

DistributedOptimizer::DistributedOptimizer(Collective& collective, torch::nn::Module& module,
                                           torch::optim::Optimizer& optimizer,
                                           const GradientOptions& options)
    : optimizer_(optimizer), reducer_(module, collective.group(), options) {}

Accumulation DistributedOptimizer::accumulate() {
  reducer_.set_accumulating(true);
  return Accumulation([this] { reducer_.set_accumulating(false); });
}

collective::StepTally DistributedOptimizer::exchange(bool joined) {
  if (!reducer_.done()) reducer_.contribute(joined);
  const auto [tally, error, waited, bytes] = reducer_.end_step();
  if (error) throw collective::CollectiveError(*error);
  if (tally->first_at_work >= 0) last_at_work_ = tally->first_at_work;
  return *tally;
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
