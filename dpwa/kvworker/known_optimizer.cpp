#include "dpwa/kvworker/known_optimizer.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

namespace dpwa::kvstore {

void KnownOptimizer::begin_step(const WorkerOptimizer& optimizer) {
  stepping_ = &optimizer;
  note_parameters(optimizer);
}

// Where several optimizers make the steps in turn, each with parameters of its own, none has the
// state of all. One that has more than the one before is no such case.
void KnownOptimizer::note_parameters(const WorkerOptimizer& optimizer) {
  std::vector<const void*> all = optimizer.stepped();
  if (all == stepped_) return;
  const std::set<const void*> now(all.begin(), all.end());
  several_ |= !std::ranges::all_of(stepped_,
                                   [&](const void* parameter) { return now.contains(parameter); });
  stepped_ = std::move(all);
}

void KnownOptimizer::made_step(bool keeps) {
  copy_.reset();
  if (keeps) keep(*stepping_);
}

const OptimizerContent& KnownOptimizer::content() const {
  if (by_halves_)
    throw std::runtime_error("update_send() does not tell the optimizer; accepted: step()");
  if (several_)
    throw std::runtime_error(
        "several optimizers make its steps, and a step has the state of one; accepted: one "
        "optimizer, with groups of parameters");
  if (stepping_ != nullptr) return *stepping_;
  if (!copy_)
    throw std::runtime_error(
        "average_gradients() in the first step does not tell the optimizer; accepted: "
        "set_optimizer() before it");
  return *copy_;
}

}  // namespace dpwa::kvstore
