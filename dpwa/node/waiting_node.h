#pragma once

#include <cstdint>
#include <memory>

#include "dpwa/config/config.h"

namespace dpwa {

// Stands in for a node whose process runs but has no trainer yet. It listens at the address of the
// node and answers the status requests of observers. It closes connections from other nodes without
// an answer, so for its peers the node is absent. Has a thread of its own, which blocks all
// signals; used by one thread.
class WaitingNode {
 public:
  // Throws ConfigError when the files of the security section cannot be used, std::runtime_error
  // when it cannot listen at the address.
  explicit WaitingNode(const Config& config);
  ~WaitingNode();  // closes all connections; the address is free afterwards
  WaitingNode(const WaitingNode&) = delete;
  WaitingNode& operator=(const WaitingNode&) = delete;

  std::uint16_t port() const;  // in use; for tests

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace dpwa
