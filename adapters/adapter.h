#pragma once

#include <memory>
#include <string>

#include "adapters/adapter_types.h"
#include "adapters/torch_types.h"
#include "dpwa/config/config.h"
#include "dpwa/rules/step_report.h"

// Only declares the types of LibTorch: a program includes what its model and optimizer need, such
// as <torch/torch.h>.
namespace dpwa {

// One training loop for every back end. Constructed by make_adapter and called only by the training
// thread. The model must outlive it and must stay as it is: the same parameters and buffers in the
// same memory, with the same dtype and shape. Values may change, also by a copy into the tensors,
// but for those of parameters after start() where servers have the weights (kvstore.update:
// server). What was trained may be frozen for a while; what was frozen stays frozen. Otherwise
// step(), its halves, average_gradients() and finish() throw a std::logic_error that names the
// tensor. A loss or an optimizer need not outlive the call that takes it. A call at the wrong time
// is a std::logic_error too, the same for all back ends. docs/ADAPTER.md lists such calls, and has
// examples.
//
//   adapter->start();
//   for (batch : batches) {
//     optimizer.zero_grad();
//     loss = ...; loss.backward();
//     adapter->average_gradients();  // only if they are clipped or read before the step
//     report = adapter->step(optimizer, loss);
//   }
//   adapter->finish();
//
// From construction on the module's parameters are views into flat buffers, one per dtype. They
// keep their identity: an optimizer made before or after sees the same tensors.
class Adapter {
 public:
  virtual ~Adapter() = default;

  // Joins the network and brings the model to common weights. Returns when it holds them, after a
  // wait that the configuration bounds. Throws when the node cannot listen, is refused by the
  // others, or too few other nodes are there. Call it once, before the methods of a step.
  virtual void start() = 0;

  // For programs that clip or read gradients between backward() and step(): completes the averaging
  // of the gradients, so that .grad holds the values that the optimizer will apply. Without this
  // call, step() does it. At most once per step. No effect when gradients stay on the node.
  virtual void average_gradients() {}

  // While the result lives, backward() adds only to the gradients of this node. Destroy it before
  // the backward pass of the last batch of a step; that pass then averages the sum. No effect when
  // gradients stay on the node.
  [[nodiscard]] virtual Accumulation accumulate() { return {}; }

  // Number of samples in the batch of the next backward pass: the weight of its gradients in the
  // average over all nodes. For the sum of several batches: the samples of all of them. Until the
  // first call all nodes have the same weight. No effect when gradients stay on the node.
  virtual void set_batch_size(std::uint64_t /*samples*/) {}

  // Before backward(), for programs that change the numbers of an optimizer between two steps, such
  // as a learning rate by a schedule: the optimizer that makes the next step, with the numbers that
  // count. They are read in the call. Without it, kvstore.update: server sends gradients during
  // backward() only while these numbers stay the same from step to step. With kvstore.update:
  // worker, a first step that calls average_gradients() needs it where workers resume from other
  // checkpoints than the first one. No effect elsewhere.
  virtual void set_optimizer(const torch::optim::Optimizer& /*optimizer*/) {}

  // The rank of this node and the number of nodes in the next step, for sharding data. Known once
  // start() has returned. Changes only while step() runs, because nodes may leave or come.
  virtual Place place() const = 0;

  // State of the program that is the same on all nodes when they step together, such as the
  // position in their common data: a small tensor in host memory. The program advances it before
  // step(), and a node that joins later takes it over together with the weights. Call it before
  // start(). No effect when nodes do not step together. Share what a learning-rate schedule
  // follows: nodes that have trained apart (collective.on_lost_rank) meet with different counts.
  virtual void share(const torch::Tensor& /*state*/) {}

  // A setting that should be the same on all nodes, such as {"--seed", "1"}. If it differs where
  // they step together, start() throws on all of them and names the nodes and their values;
  // elsewhere nodes train on, and warn with both values. Call it before start().
  virtual void require_same(const std::string& /*what*/, const std::string& /*value*/) {}

  // What the numbers of the model mean or were made from, where models that differ in it must not
  // be mixed, such as {"data", "float32[60, 3], checksum 1f2e3d4c"}. As require_same(), but gossip
  // refuses a peer that states another value, or none, like one with a model of another shape, with
  // both values in the line. Call it before start().
  virtual void mark_model(const std::string& what, const std::string& value) {
    require_same(what, value);
  }

  // One optimizer step, with the work of the back end before and after it. `loss` is the local
  // training loss, a scalar tensor (undefined: unknown). Reading it never synchronises the GPU of
  // the model.
  // After finish() or leave() this is the optimizer's step alone. The next step may be made by
  // another optimizer.
  virtual StepReport step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) = 0;

  // In place of step(), for one that the program does not want, as where its gradient scaler has
  // found an overflow: all of step() but the optimizer's step. Nothing new is published, what
  // others sent is taken, and StepReport::skipped_steps counts it. Where all nodes step together
  // all of them skip the same one, as they do when they look at the gradients after
  // average_gradients(). Throws std::logic_error where gradients have left for servers that hold
  // the weights.
  virtual StepReport skip_step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) = 0;

  // Call it after each step in a loop that may be stopped. Returns whether the loop ends now.
  // `wanted`: whether this node wants to stop. When all nodes step together and one wants to stop,
  // all end after the same step, the next one. So `wanted` must not change back to false.
  virtual bool should_stop(bool wanted) { return wanted; }

  // The two halves of step(), as in the original dpwa, for a program that calls optimizer.step()
  // between them.
  virtual void update_send(const torch::Tensor& loss) = 0;
  virtual StepReport update_wait(const torch::Tensor& loss) = 0;

  // A number of the program, such as {"accuracy", 0.97}, for the status of the node, its metrics
  // and the page of `dpwa dashboard`: the latest under each name, of which there are at most 16 of
  // 1 to 40 letters, digits, spaces and "_-./" (std::logic_error). NaN: none yet. No effect without
  // a network, nor after the end.
  virtual void show(const std::string& /*name*/, double /*value*/) {}

  // Between two steps: takes over the keys of the newly loaded cluster file that may change while
  // the node runs. Logs them, and the keys that need a restart. Throws ConfigError when log.file
  // cannot be opened. After any exception nothing has changed.
  virtual void reload(const Config& fresh) = 0;

  // Drains, takes a final global average if one is configured, and leaves the network in order. A
  // second call does nothing and returns the same report.
  virtual FinishReport finish() = 0;
  // Leaves the network at once, without an average, for a trainer that was told to stop. May be
  // called at any moment, any number of times.
  virtual void leave() = 0;

  // For checkpoints. restore() before start(): a resumed node keeps the weights of its checkpoint
  // unless a peer is ahead.
  virtual ResumeState resume_state() const = 0;
  virtual void restore(const ResumeState& state) = 0;
  // For checkpoints, between two steps and before resume_state(): brings to `optimizer` its state,
  // where the back end runs it elsewhere. False when that could not be had, which is logged: then
  // `optimizer` has no state. After restore() the first step() takes the state of its optimizer to
  // where it belongs. No effect when the optimizer runs on the node.
  virtual bool take_optimizer_state(torch::optim::Optimizer& /*optimizer*/) { return true; }
};

// The back end that the configuration names, on the device and dtypes of `model`. Opens the log of
// the cluster file, unless the process has one open (dpwa/config/open_log.h). Throws ConfigError
// for a back end that this build does not have (dpwa/config/backends.h) and for a log.file that
// cannot be opened, and std::invalid_argument for a model that cannot be shared (no parameters, all
// of them frozen, sparse or complex ones).
std::unique_ptr<Adapter> make_adapter(const Config& config, torch::nn::Module& model);

}  // namespace dpwa
