#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dpwa/net/free_ports.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/fake_peer.h"
#include "test/support/at_once.h"
#include "test/support/log_file.h"
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
  config.gossip.start_wait = 100ms;
  config.gossip.finish_wait = 400ms;
  test::VectorNode node(config, 8);
  node.gossip().start();
  finished = true;
  const FinishReport report = node.gossip().finish();
  CHECK_FALSE(report.averaged);
  CHECK(declined > 0);
  CHECK(declined < 15);  // one in 25 ms at most, for 200 ms
}

TEST_CASE("the final average waits for a snapshot buffer, and says so when none becomes free") {
  for (const bool released : {true, false}) {
    CAPTURE(released);
    const test::LogFile log;
    test::VectorCluster cluster(2, 8, [](Config& config) {
      config.gossip.finish_wait = 1s;
      config.gossip.timeout = 200ms;
    });
    cluster.start();
    Gossip& first = cluster.at(0).gossip();
    SnapshotStore& store = first.node().local().store;
    std::vector<std::shared_ptr<const Snapshot>> held;  // two of three, by slow readers
    for (int i = 0; i < 2; ++i) {
      first.publish([] { return 1.0; });
      held.push_back(store.latest());
    }
    bool averaged = false;
    test::at_once(3, [&](std::size_t i) {
      if (i == 0) averaged = first.finish().averaged;
      if (i == 1) cluster.at(1).gossip().finish();
      if (i == 2 && released) {
        while (first.node().local().state != wire::NodeState::finished) std::this_thread::yield();
        held.clear();
      }
    });
    CHECK(averaged == released);
    CHECK(log.has("every snapshot buffer is held by a reader") == !released);
  }
}

TEST_CASE("peers that hang in the final average share one bound among them") {
  constexpr std::size_t count = 3;
  std::atomic<bool> finished{false};
  std::atomic<std::uint32_t> deadlines{0};
  std::atomic<int> asked{0};
  const auto ports = net::free_ports(count + 1);
  std::vector<std::unique_ptr<test::FakePeer>> peers;
  for (std::size_t i = 1; i <= count; ++i) {
    const std::string name = "w" + std::to_string(i + 1);
    const auto hang = [&, name](test::RawSocket& socket) {
      while (const auto frame = socket.read_frame()) {
        if (frame->header.type == wire::MessageType::pull) {
          const auto pull = wire::decode_pull(frame->body);
          deadlines += pull ? pull->deadline_ms : 0;
          ++asked;
        }
        if (frame->header.type != wire::MessageType::hello) continue;  // and no answer
        const wire::Welcome welcome{
            name, 1, wire::capability(Codec::raw),
            finished ? wire::NodeState::finished : wire::NodeState::joining};
        if (!socket.send(wire::encode(welcome, frame->header.request_id))) return;
      }
    };
    peers.push_back(std::make_unique<test::FakePeer>(hang, ports[i]));
  }
  Config config = test::loopback_config(ports, 0);
  config.gossip.timeout = 50ms;
  config.gossip.start_wait = 100ms;
  config.gossip.finish_wait = 800ms;
  test::VectorNode node(config, 8);
  node.gossip().start();
  finished = true;
  CHECK(node.gossip().finish().participants == 1);
  CHECK(asked == count);
  CHECK(deadlines <= 800);  // milliseconds in all
}

}  // namespace dpwa
