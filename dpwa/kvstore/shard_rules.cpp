#include "dpwa/kvstore/shard_rules.h"

namespace dpwa::kvstore {

ShardRules rules_of(KvstoreType type, std::uint64_t staleness, bool replicas) {
  ShardRules rules;
  rules.replicas = replicas;
  rules.staleness = type == KvstoreType::dist_async  ? unbounded_staleness
                    : type == KvstoreType::dist_sync ? 0
                                                     : staleness;
  rules.merged = merges(type, staleness);
  return rules;
}

}  // namespace dpwa::kvstore
