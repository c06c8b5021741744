#pragma once

#include <cstdint>

namespace dpwa {

// As MXNet names them. dist_*: workers and servers (shard_engine.h). local_*: the devices of one
// process. The numbers of dist_* are in the snapshot files of servers: never renumber.
enum class KvstoreType : std::uint8_t {
  dist_sync = 0,
  dist_async = 1,
  dist_ssp = 2,
  local_update_cpu,       // gradients are summed and weights updated in host memory
  local_allreduce_cpu,    // gradients are summed in host memory; every device updates
  local_allreduce_device  // the same on the device of the stored value
};

// Whether the values lie in the process itself.
constexpr bool is_local(KvstoreType type) {
  return type >= KvstoreType::local_update_cpu;
}

// Whether the pushes of all workers for one step are one update.
constexpr bool merges(KvstoreType type, std::uint64_t staleness) {
  return type == KvstoreType::dist_sync || (type == KvstoreType::dist_ssp && staleness == 0);
}

}  // namespace dpwa
