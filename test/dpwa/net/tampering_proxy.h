#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "test/dpwa/net/fake_peer.h"

namespace dpwa::test {

// Stands between a caller and a node on loopback, one connection at a time, and may change what the
// node sends.
class TamperingProxy {
 public:
  // `bytes`: what the node has just sent, from byte `offset` of its stream on; they go on as they
  // are left. False: the connection is cut after them.
  using Tamper = std::function<bool(std::vector<std::byte>& bytes, std::size_t offset)>;

  TamperingProxy(std::uint16_t node, Tamper tamper);
  std::uint16_t port() const { return peer_.port(); }

 private:
  FakePeer peer_;
};

}  // namespace dpwa::test
