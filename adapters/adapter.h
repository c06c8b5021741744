#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <memory>

#include "dpwa/config/config.h"
#include "dpwa/gossip/step_report.h"

namespace dpwa {

// One training loop for every back end: gossip, collective, kvstore, null. Constructed by
// make_adapter; called by the training thread alone; the model must outlive it and must not be
// moved to another device or dtype afterwards.
//
// From construction on the module's parameters are views into flat buffers, one per dtype. They
// keep their identity: an optimizer made before or after sees the same tensors.
class Adapter {
 public:
  virtual ~Adapter() = default;

  // Goes on the network and brings the model to common weights; returns when it holds them, at the
  // latest after gossip.start_wait. Throws when the node cannot listen or is refused by all. Once,
  // before the first step: anything else is a std::logic_error where it matters.
  virtual void start() = 0;

  // One optimizer step with everything the back end does around it. `loss` is the local training
  // loss, a scalar tensor; reading it never synchronises the GPU of the model. Undefined: unknown.
  // After finish() or leave() this is the optimizer's step alone. Throws std::logic_error when the
  // model has been moved or loaded since make_adapter().
  virtual StepReport step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) = 0;

  // The two halves of a gossip step, as in the original dpwa: publish and begin a pull; then, after
  // optimizer.step(), take what has arrived and blend it. No-ops elsewhere.
  virtual void update_send(const torch::Tensor& loss) = 0;
  virtual StepReport update_wait(const torch::Tensor& loss) = 0;

  // Between two steps: takes over what may change while it runs (other nodes, waits, chances, log,
  // keys) of the cluster file loaded anew for this node; logs that, and what needs a restart.
  // Throws ConfigError where log.file cannot be opened; whatever it throws, all stays as it was.
  virtual void reload(const Config& fresh) = 0;

  // Drains and leaves the network in order; takes the final global average when configured. A
  // second call does nothing and reports the same.
  virtual FinishReport finish() = 0;
  // Leaves the network at once, without an average: for a trainer that was told to stop. At any
  // moment, any number of times.
  virtual void leave() = 0;

  // Clock and descent, for checkpoints. restore() before start(): a resumed node keeps the weights
  // of its checkpoint unless a peer is ahead.
  virtual ResumeState resume_state() const = 0;
  virtual void restore(const ResumeState& state) = 0;
};

// The back end that the configuration names, on the device and dtypes of `model`. Throws
// ConfigError for a back end that this build does not have, and std::invalid_argument for a model
// that cannot be shared (no parameters, sparse or complex ones).
std::unique_ptr<Adapter> make_adapter(const Config& config, torch::nn::Module& model);

}  // namespace dpwa
