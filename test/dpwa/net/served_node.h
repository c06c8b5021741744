#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "dpwa/net/local_node.h"
#include "dpwa/net/server.h"
#include "dpwa/wire/messages.h"

namespace dpwa::test {

// Node w1 of cluster "test", whose peers are w2 and w3: its Rx side alone, on a thread of its own,
// serving a float32 vector 'x' that the test publishes.
class ServedNode {
 public:
  // `allocate`: the memory of its snapshots; plain memory when it is empty. `members`: who is in
  // its cluster; w2 and w3 for good when it is null. `handler`: serves more, when it is not null.
  explicit ServedNode(std::size_t elements = 16, ServerOptions options = {},
                      BufferAllocator allocate = {}, bool chunk_checksums = true,
                      std::shared_ptr<Security> security = nullptr,
                      std::unique_ptr<Members> members = nullptr,
                      std::unique_ptr<RequestHandler> handler = nullptr);
  ~ServedNode();  // stops

  void stop();
  std::uint16_t port() const { return port_; }
  LocalNode& local() { return local_; }

  // Publishes a vector of `value` as the next version; false when no buffer is free.
  bool publish(float value);
  // How many snapshot buffers the test could fill now.
  std::size_t free_buffers();
  // Replies from now on may take so long, whatever their caller states.
  void allow_replies(Duration most);
  // A peer can connect and pull what was published last, sooner or later.
  bool serves_an_honest_peer();

 private:
  LocalNode local_;
  boost::asio::io_context io_;
  Server server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

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
