#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/kvstore/state_transfer.h"
#include "dpwa/kvworker/known_optimizer.h"
#include "dpwa/kvworker/shared_gradients.h"
#include "dpwa/kvworker/store_states.h"

namespace dpwa::kvstore {

// update: worker: weights and the optimizer's state from one worker to another that comes to the
// run, comes back to it, or begins it with another checkpoint, by way of the servers
// (dpwa/kvstore/state_transfer.h). Training thread.
class WeightTransfer {
 public:
  // These outlive it. `weights` has the parameters and buffers of `model`.
  struct Parts {
    const Config& config;
    WorkerSession& session;
    WorkerModel& model;
    std::vector<bool>& used;  // by trained parameter: it has had a gradient
    StoreStates& states;
    StepExchange& weights;
    SharedGradients& gradients;
  };
  // Makes the key of the note. Throws std::runtime_error as WorkerSession::wait_created.
  explicit WeightTransfer(const Parts& parts);

  // This worker waits for others, perhaps for one that has no weights: gives those that `step`
  // begins with, if it is asked for them. The optimizer has not made the step yet.
  void give_if_asked(std::uint64_t step, const KnownOptimizer& optimizer);

  struct Own {
    double clock = 0;           // of this worker
    double clock_at_begin = 0;  // of the run
    bool restored = false;      // from a checkpoint
    bool has_weights = false;   // of an earlier step of the run
  };
  // Takes what the other workers have. `step`: that of the weights of this one from now on. Throws
  // std::runtime_error when no worker gives them. give_to() is for the first step after it.
  ExchangeReport take(const Own& own, std::uint64_t& step);
  bool has_states() const { return !given_.empty(); }
  // The state that was taken to the optimizer of the program.
  void give_to(WorkerOptimizer& optimizer);

 private:
  MemberId self() const;
  TransferNote read_note(ExchangeReport& report);
  void write_note(TransferNote::Kind kind, std::uint64_t step, std::uint64_t giver,
                  ExchangeReport& report);
  void give(std::uint64_t step, const OptimizerContent& optimizer, ExchangeReport& report);
  std::vector<Slices> pull_values(ExchangeReport& report);
  void take_values(const std::vector<Slices>& values);
  bool take_begin(const Own& own, ExchangeReport& report);
  bool take_given(const TransferNote& note, ExchangeReport& report);

  const Parts parts_;
  // By index of the trained parameters, for an optimizer that is not known yet.
  std::vector<std::optional<KeyState>> given_;
};

}  // namespace dpwa::kvstore
