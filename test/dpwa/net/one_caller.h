#pragma once

#include <cstdint>
#include <vector>

#include "dpwa/wire/messages.h"
#include "test/dpwa/net/served_node.h"

namespace dpwa::test {

// A server that takes one connection at a time, so that an honest peer is served after a hostile
// one only if that left nothing behind.
struct OneCaller {
  ServedNode node{16, options()};

  static ServerOptions options();
  std::uint64_t protocol_errors() { return node.local().traffic.protocol_errors; }
  // After the hostile connection has ended: nothing of it is left.
  void check_unharmed();
};

using Bytes = std::vector<std::byte>;

Bytes header(wire::MessageType type, std::uint64_t body_bytes);
// A frame with `value` at `offset` of its header, whose checksum is mended.
Bytes patched(Bytes frame, std::size_t offset, std::uint8_t value);
Bytes joined(Bytes a, const Bytes& b);

}  // namespace dpwa::test
