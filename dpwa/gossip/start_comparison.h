#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/net/client.h"
#include "dpwa/snapshot/byte_range.h"

namespace dpwa {

// How far the own weights, just taken over, are from those of others: what tells a node that starts
// whether it has begun with a liar's. Nothing is blended. Each distance goes into the firewall's
// window, which so knows what is usual before the first step. Runs on the trainer thread.
class StartComparison {
 public:
  // `blocks`: those in which the model is pulled. `timeout`: of each pull. None is begun after
  // `until`.
  StartComparison(Client& client, const std::vector<ByteRange>& blocks, Duration timeout,
                  TimePoint until)
      : client_(client), blocks_(blocks), timeout_(timeout), until_(until) {}

  // The lower median of the distances to `witnesses`, of whom each is asked once, and then in turn
  // until there are `samples` distances. Those who do not answer are left out; none: fewer than
  // three did, of whom one may be who brought the own weights.
  std::optional<double> median(std::vector<PeerId> witnesses, std::uint32_t samples,
                               std::uint64_t lineage);

 private:
  std::optional<double> distance_to(PeerId witness, std::uint64_t lineage);
  std::optional<double> squared_distance_to(PeerId witness, unsigned block, std::uint64_t lineage);

  Client& client_;
  const std::vector<ByteRange>& blocks_;
  const Duration timeout_;
  const TimePoint until_;
};

}  // namespace dpwa
