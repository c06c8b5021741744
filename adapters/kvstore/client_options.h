#pragma once

#include <memory>

#include "dpwa/config/config.h"
#include "dpwa/kvclient/store_client.h"
#include "dpwa/kvstore/shard_engine.h"

namespace dpwa {
class Security;
}

namespace dpwa::kvstore {

// How the servers of this file make updates of pushes. `kvstore.type` is one of the types dist_*.
ShardRules rules_of(const Config& config);

// The options of the worker `config.self`, as a new incarnation. `security`: of make_security().
kvclient::StoreClientOptions client_options(const Config& config,
                                            std::shared_ptr<Security> security);

}  // namespace dpwa::kvstore
