#include <doctest/doctest.h>

#include <atomic>
#include <chrono>

#include "dpwa/net/free_ports.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/fake_peer.h"
#include "test/support/vector_cluster.h"

namespace dpwa {

using namespace std::chrono_literals;

TEST_CASE("a peer that has finished and is busy for ever does not hold up the final average") {
  std::atomic<bool> finished{false};
  std::atomic<int> declined{0};
  const auto ports = net::free_ports(2);
  const test::FakePeer peer(
      [&](test::RawSocket& socket) {
        while (const auto frame = socket.read_frame()) {
          const std::uint32_t id = frame->header.request_id;
          if (frame->header.type == wire::MessageType::hello) {
            const auto hello = wire::decode_hello(frame->body);
            const wire::Welcome welcome{
                "w2", 1, wire::capability(Codec::raw),
                finished ? wire::NodeState::finished : wire::NodeState::joining};
            if (!hello || !socket.send(wire::encode(welcome, id))) return;
          } else {
            ++declined;
            if (!socket.send(wire::encode_empty(wire::MessageType::busy, id))) return;
          }
        }
      },
      ports[1]);
  Config config = test::loopback_config(ports, 0);
  config.gossip.timeout = 200ms;
  config.gossip.finish_wait = 400ms;
  test::VectorNode node(config, 8);
  node.gossip().start();
  finished = true;
  const FinishReport report = node.gossip().finish();
  CHECK_FALSE(report.averaged);
  CHECK(declined > 0);
  CHECK(declined < 15);  // one in 25 ms at most, for 200 ms
}

}  // namespace dpwa
