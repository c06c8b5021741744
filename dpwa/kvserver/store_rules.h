#pragma once

#include "dpwa/config/config.h"
#include "dpwa/kvstore/shard_engine.h"

namespace dpwa::kvserver {

// Of a type that has servers.
inline kvstore::StoreType store_type(KvstoreType type) {
  switch (type) {
    case KvstoreType::dist_async:
      return kvstore::StoreType::dist_async;
    case KvstoreType::dist_ssp:
      return kvstore::StoreType::dist_ssp;
    default:
      return kvstore::StoreType::dist_sync;
  }
}

}  // namespace dpwa::kvserver
