#pragma once

#include <cstdint>
#include <memory>

#include "dpwa/config/config.h"

namespace dpwa {

// Stands in for a node whose process runs and has no trainer yet: listens where the node will and
// answers the STATUS of observers. A node that calls is hung up on without a word, as there is
// nothing to be had: for its peers the node is not there. Has a thread of its own, which blocks all
// signals; used by one thread.
class WaitingNode {
 public:
  // Throws ConfigError when the files of the security section cannot be used, std::runtime_error
  // when the address cannot be had.
  explicit WaitingNode(const Config& config);
  ~WaitingNode();  // hangs up; the address is free then
  WaitingNode(const WaitingNode&) = delete;
  WaitingNode& operator=(const WaitingNode&) = delete;

  std::uint16_t port() const;

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace dpwa
