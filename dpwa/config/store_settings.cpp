#include "dpwa/config/store_settings.h"

#include <string>
#include <vector>

#include "dpwa/config/names.h"

namespace dpwa {

Settings shared_store_settings(const Config& config) {
  const KvstoreConfig& store = config.kvstore;
  std::vector<std::string> servers;
  for (const NodeEntry& server : store.servers) servers.push_back(server.name);
  return {
      {"kvstore.type", std::string(config::name_in(config::kvstore_type_words, store.type))},
      {"kvstore.staleness", std::to_string(store.staleness)},
      {"kvstore.update", std::string(config::name_in(config::kvstore_update_words, store.update))},
      {"kvstore.replicas", std::to_string(store.replicas)},
      // Slices lie by the order of the servers.
      {"kvstore.servers", setting_of(servers)},
  };
}

std::size_t first_workers(const Config& config) {
  return config.kvstore.min_workers > 0 ? config.kvstore.min_workers : config.nodes.size();
}

kvstore::ShardRules store_rules(const Config& config) {
  const KvstoreConfig& store = config.kvstore;
  return kvstore::rules_of(store.type, store.staleness, store.replicas > 0);
}

}  // namespace dpwa
