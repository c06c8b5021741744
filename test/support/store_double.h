#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "dpwa/kvstore/shard_engine.h"
#include "dpwa/net/peer_address.h"

namespace dpwa::test {

// The server "s1" of a store in this process: a ServerEngine on a thread of its own behind a port
// on loopback, with as much of a server around it as workers see. Without TLS.
class StoreDouble {
 public:
  StoreDouble(const kvstore::ShardRules& rules, std::size_t min_workers);
  ~StoreDouble();

  PeerAddress address() const;
  // Closes the connection to all workers, once.
  void cut();
  // What workers have sent so far, in order: "push KEY" and "pull KEY".
  std::vector<std::string> asked() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dpwa::test
