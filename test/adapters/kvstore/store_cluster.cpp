#include "test/adapters/kvstore/store_cluster.h"

#include "dpwa/net/free_ports.h"
#include "test/support/eventually.h"

namespace dpwa::test {

StoreCluster::StoreCluster(std::size_t workers, KvstoreType type, std::size_t count,
                           const std::function<void(KvstoreConfig&)>& change,
                           const SecurityConfig& security) {
  config.cluster = "test";
  config.security = security;
  config.backend = Backend::kvstore;
  for (std::size_t i = 0; i < workers; ++i) {
    NodeEntry node;
    node.name = "w" + std::to_string(i + 1);
    node.port = static_cast<std::uint16_t>(i + 1);  // nobody listens there
    config.nodes.push_back(node);
  }
  config.kvstore.type = type;
  for (const std::uint16_t port : net::free_ports(count)) {
    NodeEntry server;
    server.name = "s" + std::to_string(config.kvstore.servers.size() + 1);
    server.port = port;
    config.kvstore.servers.push_back(server);
  }
  config.kvstore.lost_after = std::chrono::seconds(10);  // a loaded machine
  if (change) change(config.kvstore);
  for (const NodeEntry& server : config.kvstore.servers) {
    servers.push_back(std::make_unique<kvserver::StoreServer>(config, server.name));
    servers.back()->start();
  }
}

Config StoreCluster::config_of(const std::string& name) const {
  Config own = config;
  own.self = name;
  return own;
}

void StoreCluster::start_again(std::size_t server) {
  const std::string& name = config.kvstore.servers[server].name;
  servers[server] = std::make_unique<kvserver::StoreServer>(config, name);
  servers[server]->start(std::chrono::seconds(10));
}

void StoreCluster::run(std::size_t workers,
                       const std::function<void(std::size_t, KVStore&)>& body) const {
  at_once(workers, [&](std::size_t index) {
    KVStore store(config_of("w" + std::to_string(index + 1)));
    body(index, store);
  });
}

}  // namespace dpwa::test
