#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/kvworker/key_states.h"
#include "dpwa/kvworker/step_exchange.h"
#include "dpwa/kvworker/worker_model.h"
#include "dpwa/kvworker/worker_optimizer.h"

namespace dpwa::kvstore {

// The state of the optimizer that the servers keep for each parameter of a model, as a worker reads
// and places it. All throw std::runtime_error when a server refuses. Training thread.
class StoreStates {
 public:
  // These outlive it. `servers`: their number.
  StoreStates(WorkerSession& session, const WorkerModel& model, std::size_t servers)
      : session_(session), model_(model), servers_(static_cast<std::uint32_t>(servers)) {}

  KeyShape shape_of(std::size_t value) const;
  // By index of the trained parameters; none: no update yet.
  std::vector<std::optional<KeyState>> read(ExchangeReport& report);
  // What was read in the optimizer of this program. Throws std::runtime_error where that is another
  // one.
  void give_to(WorkerOptimizer& optimizer, const std::vector<std::optional<KeyState>>& states,
               const std::string& self) const;

  // Places the state, and the value behind it unless `value` is empty.
  kvclient::Ticket place(const KeyShape& shape, const KeyState& state,
                         std::span<const std::byte> value);
  void wait_placed(const std::vector<kvclient::Ticket>& tickets, ExchangeReport& report);

  // --- update: server: for checkpoints
  // The state becomes that of this optimizer, whose terms these are. False: not all has come.
  bool fetch_into(WorkerOptimizer& optimizer, const OptimizerTerms& terms);
  // Gives the state of a checkpoint to servers that are new. `used`: as of OptimizerContent, by
  // trained parameter. Called by the worker whose weights count.
  void place_restored(const OptimizerContent& optimizer, const std::vector<bool>& used);

 private:
  WorkerSession& session_;
  const WorkerModel& model_;
  const std::uint32_t servers_;
};

}  // namespace dpwa::kvstore
