#pragma once

#include "dpwa/config/config.h"

namespace dpwa {

// Whether the values lie in the process itself.
constexpr bool is_local(KvstoreType type) {
  return type == KvstoreType::local_update_cpu || type == KvstoreType::local_allreduce_cpu ||
         type == KvstoreType::local_allreduce_device;
}

// Whether the pushes of all workers for one step are one update.
inline bool merges(const KvstoreConfig& store) {
  return store.type == KvstoreType::dist_sync ||
         (store.type == KvstoreType::dist_ssp && store.staleness == 0);
}

}  // namespace dpwa
