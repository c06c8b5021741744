#pragma once

#include <memory>
#include <vector>

#include "dpwa/kvworker/worker_optimizer.h"

namespace dpwa::kvstore {

// update: worker: what is known of the optimizer that the program steps with, for a worker that
// wants its state. That is the optimizer of the step under way; and where gradients are averaged
// before the step, a copy from the end of the step before, or from set_optimizer(). Training
// thread.
class KnownOptimizer {
 public:
  void begin_step(const WorkerOptimizer& optimizer);
  // `keeps`: for the next average, which comes before the next step.
  void made_step(bool keeps);
  void end_step() { stepping_ = nullptr; }  // also of one that has failed
  void keep(const WorkerOptimizer& optimizer) { copy_ = optimizer.copy(); }
  // The program steps by halves, which tell nothing of an optimizer.
  void step_by_halves() { by_halves_ = true; }
  bool steps_by_halves() const { return by_halves_; }

  // Whether it is known, or known to stay unknown.
  bool is_settled() const { return stepping_ != nullptr || copy_ || by_halves_; }
  // Its numbers and its state. Throws std::runtime_error with the reason where they are not known.
  const OptimizerContent& content() const;

 private:
  void note_parameters(const WorkerOptimizer& optimizer);

  const WorkerOptimizer* stepping_ = nullptr;
  std::unique_ptr<OptimizerContent> copy_;
  std::vector<const void*> stepped_;  // parameters of the last step's optimizer, by identity
  bool several_ = false;              // that of a later step had not all of them
  bool by_halves_ = false;
};

}  // namespace dpwa::kvstore
