#pragma once

#include <cstddef>

#include "dpwa/base/settings.h"
#include "dpwa/config/config.h"
#include "dpwa/kvstore/shard_engine.h"

namespace dpwa {

// The settings of section kvstore that all workers and servers of a run need alike.
Settings shared_store_settings(const Config& config);
// The number of workers that the first step waits for.
std::size_t first_workers(const Config& config);

// How the servers of this file make updates of pushes. `kvstore.type` is one of the types dist_*.
kvstore::ShardRules store_rules(const Config& config);

}  // namespace dpwa
