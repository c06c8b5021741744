#include "adapters/kvstore/client_options.h"

#include <utility>
#include <vector>

#include "dpwa/config/store_settings.h"
#include "dpwa/kvstore/beat_interval.h"

namespace dpwa::kvstore {

ShardRules rules_of(const Config& config) {
  return rules_of(config.kvstore.type, config.kvstore.staleness, config.kvstore.replicas > 0);
}

kvclient::StoreClientOptions client_options(const Config& config,
                                            std::shared_ptr<Security> security) {
  kvclient::StoreClientOptions options;
  options.cluster = config.cluster;
  options.self = {config.self, wall_clock_us()};
  for (const NodeEntry& server : config.kvstore.servers) {
    const auto hosts = server.addresses.empty() ? std::vector{server.host} : server.addresses;
    options.servers.push_back({server.name, hosts, server.port});
  }
  const ShardRules rules = rules_of(config);
  options.engine.merged = rules.merged;
  options.engine.replicas = rules.replicas;
  options.engine.settings = shared_store_settings(config);
  options.engine.beat = beat_interval(config.kvstore.lost_after);
  options.compression = config.kvstore.compression;
  options.security = std::move(security);
  static_cast<SocketOptions&>(options) = config.transport;
  return options;
}

}  // namespace dpwa::kvstore
