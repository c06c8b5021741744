// What KvstoreAdapter checks while it trains.
#include <cmath>
#include <stdexcept>

#include "adapters/common/tensor_checksum.h"
#include "adapters/kvstore/kvstore_adapter.h"

namespace dpwa {

// With update: server the servers have the weights.
std::optional<std::uint32_t> KvstoreAdapter::checksum_of_weights() const {
  if (by_servers() || !compares_weights_at(step_)) return std::nullopt;
  return checksum_of(trained_parameters_);
}

// A difference never heals, and spoils the model. A worker whose numbers did not count in this step
// has nothing to compare.
void KvstoreAdapter::require_equal_weights(const kvstore::ExchangeReport& exchanged) {
  const bool counts = exchanged.complete() && !exchanged.dropped && samples_ > 0;
  if (!counts || gradients_->has_equal_checksums()) return;
  leave();
  throw std::runtime_error(
      "node '" + config_.self + "' ends at clock " + std::to_string(std::llround(clock_)) +
      ", because its weights differ from those of the other workers, and must be equal after each "
      "step; accepted: the same optimizer and numbers on all workers, processors of one type, and "
      "nothing else that writes weights");
}

}  // namespace dpwa
