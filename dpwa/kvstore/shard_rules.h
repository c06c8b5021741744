#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "dpwa/base/time.h"
#include "dpwa/kvstore/store_type.h"

namespace dpwa::kvstore {

inline constexpr std::uint64_t unbounded_staleness = std::numeric_limits<std::uint64_t>::max();

// How pushes become updates.
//   dist_sync           merged, staleness 0
//   dist_async          not merged, staleness unbounded
//   dist_ssp, s = 0     as dist_sync: nobody may see an update of a step before all have pushed it,
//                       so the pushes of a step are one update
//   dist_ssp, s > 0     not merged, staleness s
struct ShardRules {
  // The pushes of all workers for one step are one update; otherwise each push is one.
  bool merged = true;
  // A pull of a worker that has pushed c steps waits for all pushes of steps below c - staleness
  // ("More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", Ho et al.,
  // 2013). So its worker goes on only while no other is more than `staleness` steps behind.
  std::uint64_t staleness = 0;
  bool replicas = false;
  // How long a replica may be silent before it is asked again, and a quarter of that time at most.
  Duration resend = std::chrono::milliseconds(500);
  std::size_t syncs_at_once = 16;  // slices that are compared or copied together
  // The most bytes of one server: values, optimizer states, one sum and bytes_beside_values for
  // each slice, replicas included. A key or an optimizer that would exceed it is refused; a replica
  // never is. 0: no bound.
  std::uint64_t memory_bytes = 0;
};

// The rules of one of the types dist_*. `staleness`: of dist_ssp; the other types imply theirs.
ShardRules rules_of(KvstoreType type, std::uint64_t staleness = 0, bool replicas = false);

}  // namespace dpwa::kvstore
