#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dpwa/collective/signature.h"
#include "dpwa/collective/step_group.h"
#include "dpwa/collective/step_tally.h"

namespace dpwa::collective {

// Called around the waits for others in an exchange, with a text for the log.
struct WaitWords {
  std::function<void(const std::string&)> begin = [](const std::string&) {};
  std::function<void()> end = [] {};
};

// The model of this process and the exchange of its gradients, as the framework that trains it has
// them. Exchanges are those of the group that it is in, and come on all members in the same order.
// One (training) thread.
class Replica {
 public:
  virtual ~Replica() = default;

  // Parameters and buffers with their types and shapes.
  virtual std::vector<Signature::Entry> tensors() const = 0;
  // Throws std::exception where the program has changed what the node relies on.
  virtual void check() const = 0;
  // Whether a loss is at hand at once, not once a device has computed it.
  virtual bool is_on_host() const = 0;
  // All members take over the model of `source`. Throws CollectiveError.
  virtual void broadcast_model(const StepGroup& group, int source) = 0;
  // All members take over the mean of the weights of these ranks. Throws CollectiveError.
  virtual void average_model(const StepGroup& group, const std::vector<bool>& averaged) = 0;

  // The group outlives its use, until drop(). Throws CollectiveError.
  virtual void enter(const StepGroup& group, WaitWords waits) = 0;
  virtual void drop() = 0;
  // Whether a backward pass has begun to send its gradients.
  virtual bool has_begun() const = 0;
  // Ends the exchange that the backward pass has begun; without one sends what passes under
  // accumulate() have left, or else zeros, so that no member waits.
  virtual StepResult exchange() = 0;
  // The same gradients in another group, where the exchange has failed.
  virtual StepResult repeat() = 0;
  // Without a batch, for a node that has no more.
  virtual StepResult exchange_joined() = 0;
  // What the next exchanges tell all: that this member stops; a number below 2^28.
  virtual void set_stopping() = 0;
  virtual void set_note(std::uint32_t note) = 0;
};

// The optimizer that makes the steps of a replica.
class OptimizerState {
 public:
  virtual ~OptimizerState() = default;

  // Class, learning rates and hyper-parameters. If they differed, the models would drift apart.
  virtual Signature words() const = 0;
  // The checksum of what it remembers of its parameters; the same text for all optimizers of which
  // that is not known.
  virtual std::string state_words() const = 0;
  // What it remembers, as bytes.
  virtual std::string save() const = 0;
  virtual void load(const std::string& saved) = 0;
};

}  // namespace dpwa::collective
