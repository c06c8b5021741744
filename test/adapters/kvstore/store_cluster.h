#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "adapters/kvstore/kvstore.h"
#include "dpwa/config/config.h"
#include "dpwa/kvserver/store_server.h"

namespace dpwa::test {

// Servers of the store on free ports of this host, on threads of this process, and a file for
// `workers` workers w1, w2 and so on, which begin together.
struct StoreCluster {
  StoreCluster(std::size_t workers, KvstoreType type, std::size_t servers = 1,
               const std::function<void(KvstoreConfig&)>& change = {},
               const SecurityConfig& security = {});

  // As the worker of this name.
  Config config_of(const std::string& name) const;
  // In place of a server that was reset, a new one, which has nothing.
  void start_again(std::size_t server);
  // body(index, its store), each on a thread of its own, as processes would.
  void run(std::size_t workers,
           const std::function<void(std::size_t index, KVStore& store)>& body) const;

  Config config;
  std::vector<std::unique_ptr<kvserver::StoreServer>> servers;
};

}  // namespace dpwa::test
