#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <string>

#include "adapters/accumulation.h"
#include "adapters/place.h"
#include "adapters/resume_state.h"
#include "dpwa/config/config.h"
#include "dpwa/rules/step_report.h"

namespace dpwa {

// One training loop for every back end. Constructed by make_adapter; called by the training thread
// alone; the model must outlive it and must not be moved to another device or dtype afterwards.
//
//   adapter->start();
//   for (batch : batches) {
//     optimizer.zero_grad();
//     loss = ...; loss.backward();
//     adapter->average_gradients();  // only where they are clipped or looked at before the step
//     report = adapter->step(optimizer, loss);
//   }
//   adapter->finish();
//
// From construction on the module's parameters are views into flat buffers, one per dtype. They
// keep their identity: an optimizer made before or after sees the same tensors.
class Adapter {
 public:
  virtual ~Adapter() = default;

  // Goes on the network and brings the model to common weights; returns when it holds them, after
  // a wait that the configuration bounds. Throws when the node cannot listen, is refused by the
  // others or misses those that it cannot do without. Once, before the first step: anything else is
  // a std::logic_error where it matters.
  virtual void start() = 0;

  // Between backward() and step(), for programs that clip gradients or look at them: completes what
  // the back end does to the gradients, so that .grad holds what the optimizer will apply. step()
  // does it otherwise. At most once a step; nothing happens where gradients stay on the node.
  virtual void average_gradients() {}

  // While the result lives, backward() adds to the gradients of this node alone. To be given up
  // before the backward pass of the last batch of a step, which then averages the sum. Nothing
  // changes where gradients stay on the node.
  [[nodiscard]] virtual Accumulation accumulate() { return {}; }

  // Samples in the batch of the next backward pass, by which its gradients weigh where those of all
  // nodes are averaged; of the sum of several batches: all of theirs. Until the first call all
  // nodes weigh the same. Nothing changes where gradients stay on the node.
  virtual void set_batch_size(std::uint64_t /*samples*/) {}

  // Which of how many nodes this one is in the next step: what a program shards its data by. Known
  // once start() has returned; changes only while step() runs, where nodes may leave or come.
  virtual Place place() const = 0;

  // State of the program that is the same on all nodes where these step together, such as the
  // position in data that they share: a small tensor in host memory, which the program advances
  // before step(), and which a node that comes later takes over with the weights. Before start().
  // Nothing changes where nodes go their own ways.
  virtual void share(const torch::Tensor& /*state*/) {}

  // What has to be the same on all nodes where these step together, such as {"--seed", "1"}: where
  // it is not, start() throws on all of them and says who has what. Before start(). Nothing happens
  // where nodes go their own ways.
  virtual void require_same(const std::string& /*what*/, const std::string& /*value*/) {}

  // One optimizer step with everything the back end does around it. `loss` is the local training
  // loss, a scalar tensor; reading it never synchronises the GPU of the model. Undefined: unknown.
  // After finish() or leave() this is the optimizer's step alone. Throws std::logic_error when the
  // model has been moved or loaded since make_adapter().
  virtual StepReport step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) = 0;

  // After each step, in a loop that may be told to stop: whether it ends now. `wanted`: on this
  // node. Where all nodes step together, one that wants to stop makes all end after the same step,
  // the next one; so what a node wants must not change back.
  virtual bool should_stop(bool wanted) { return wanted; }

  // The two halves of step(), as in the original dpwa, for a program that calls optimizer.step()
  // between them: what is due before the optimizer's step, and what is due after it.
  virtual void update_send(const torch::Tensor& loss) = 0;
  virtual StepReport update_wait(const torch::Tensor& loss) = 0;

  // Between two steps: takes over what may change while it runs of the cluster file loaded anew for
  // this node; logs that, and what needs a restart.
  // Throws ConfigError where log.file cannot be opened; whatever it throws, all stays as it was.
  virtual void reload(const Config& fresh) = 0;

  // Drains and leaves the network in order; takes a final global average where one is due. A
  // second call does nothing and reports the same.
  virtual FinishReport finish() = 0;
  // Leaves the network at once, without an average: for a trainer that was told to stop. At any
  // moment, any number of times.
  virtual void leave() = 0;

  // For checkpoints. restore() before start(): a resumed node keeps the weights of its checkpoint
  // unless a peer is ahead.
  virtual ResumeState resume_state() const = 0;
  virtual void restore(const ResumeState& state) = 0;
};

// The back end that the configuration names, on the device and dtypes of `model`. Throws
// ConfigError for a back end that this build does not have (dpwa/config/backends.h), and
// std::invalid_argument for a model that cannot be shared (no parameters, sparse or complex ones).
std::unique_ptr<Adapter> make_adapter(const Config& config, torch::nn::Module& model);

}  // namespace dpwa
