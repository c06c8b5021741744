#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "dpwa/kvstore/messages.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/kvworker/error.h"
#include "dpwa/kvworker/key_states.h"

namespace dpwa::kvstore {

// An optimizer in the form that the servers receive with every push: the name, and the numbers of
// the group of each trained parameter.
struct OptimizerTerms {
  std::vector<Bytes> groups;
  std::vector<std::optional<std::size_t>> group_of;  // by trained parameter

  // The options of the parameter with this index; null: the optimizer does not have it.
  const Bytes* of(std::size_t trained) const {
    const auto group = group_of[trained];
    return group ? &groups[*group] : nullptr;
  }
  bool operator==(const OptimizerTerms&) const = default;
};

// The numbers and the state of an optimizer of a framework, for the trained parameters.
class OptimizerContent {
 public:
  virtual ~OptimizerContent() = default;
  // Throws UnknownOptimizer that lists those of the servers, and KVStoreError for numbers that they
  // refuse.
  virtual OptimizerTerms terms() const = 0;
  // Where the framework does not count steps, one stands for all; `used`: for plain SGD, which
  // remembers nothing, whether the parameter has been updated.
  virtual OptimizerState state(std::size_t trained, const OptimizerOptions& options,
                               bool used) const = 0;

  // None: the optimizer does not have this parameter.
  std::optional<KeyState> key_state(const OptimizerTerms& terms, std::size_t trained,
                                    bool used) const {
    const Bytes* form = terms.of(trained);
    if (form == nullptr) return std::nullopt;
    const auto options = decode_options(*form);
    return KeyState{*options, state(trained, *options, used)};
  }
};

// The optimizer that a program steps with.
class WorkerOptimizer : public OptimizerContent {
 public:
  virtual void step() = 0;
  // The parameters that it steps, by identity.
  virtual std::vector<const void*> stepped() const = 0;
  // Its content by value, until its next step.
  virtual std::unique_ptr<OptimizerContent> copy() const = 0;
  // The state becomes this one, which fits the options and the parameter.
  virtual void give(std::size_t trained, const OptimizerOptions& options,
                    const OptimizerState& state) = 0;
  virtual void forget() = 0;  // all state
};

}  // namespace dpwa::kvstore
