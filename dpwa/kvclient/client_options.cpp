#include "dpwa/kvclient/client_options.h"

#include <utility>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/config/keys.h"
#include "dpwa/kvstore/beat_interval.h"
#include "dpwa/kvstore/shard_engine.h"

namespace dpwa::kvclient {

StoreClientOptions client_options(const Config& config, std::shared_ptr<Security> security) {
  StoreClientOptions options;
  options.cluster = config.cluster;
  options.self = {config.self, wall_clock_us()};
  for (const NodeEntry& server : config.kvstore.servers)
    options.servers.push_back(peer_address(server));
  const kvstore::ShardRules rules = store_rules(config);
  options.engine.merged = rules.merged;
  options.engine.replicas = rules.replicas;
  options.engine.settings = config::shared_settings(config, "kvstore");
  options.engine.beat = kvstore::beat_interval(config.kvstore.lost_after);
  options.compression = config.kvstore.compression;
  options.security = std::move(security);
  static_cast<SocketOptions&>(options) = config.transport;
  return options;
}

}  // namespace dpwa::kvclient
