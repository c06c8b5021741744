#include <doctest/doctest.h>

#include "dpwa/snapshot/aligned_buffer.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/secure_nodes.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/allocations.h"
#include "test/support/eventually.h"

namespace dpwa {
namespace {

using test::PullingNode;
using test::ServedNode;

constexpr std::size_t elements = 40000;  // several chunks

// Pulls again and again, each time on a new connection and with memory refused one allocation
// later, on whichever of the two network threads that is, until a pull needs no more of them.
// Whatever becomes of such a pull, the ones after it are as good as any.
void check_refusals(ServedNode& peer, PullingNode& node) {
  float value = 1;
  int refusals = 0;
  bool refused = true;
  for (std::uint64_t skipped = 0; refused && skipped < 2000; ++skipped) {
    CAPTURE(skipped);
    node.client().greet_all(std::chrono::seconds(10));
    REQUIRE(test::eventually([&] { return peer.publish(++value); }));
    test::refuse_one(skipped);
    const Arrival arrival = node.pull();
    refused = test::refuse_none();
    refusals += refused ? 1 : 0;
    if (arrival.outcome == Outcome::mixed) REQUIRE(node.landed().back() == value);
    REQUIRE(test::eventually([&] {
      if (!peer.publish(++value)) return false;
      return node.pull().outcome == Outcome::mixed && node.landed().front() == value &&
             node.landed().back() == value;
    }));
  }
  CHECK_FALSE(refused);
  CHECK(refusals > 10);
}

}  // namespace

TEST_CASE("memory refused anywhere in a pull costs that pull alone, over TCP") {
  ServedNode peer(elements);
  PullingNode node({{"w1", {"127.0.0.1"}, peer.port()}}, elements, 1, /*same_host=*/false);
  check_refusals(peer, node);
}

TEST_CASE("memory refused anywhere in a pull costs that pull alone, over TLS") {
  const test::ClusterKey key;
  ServedNode peer(elements, {}, {}, true, key.open());
  PullingNode node({{"w1", {"127.0.0.1"}, peer.port()}}, elements, 1, /*same_host=*/false,
                   key.open());
  check_refusals(peer, node);
}

TEST_CASE("memory refused anywhere in a pull costs that pull alone, from a peer's memory") {
  ServedNode peer(elements, {}, [](std::size_t bytes) { return AlignedBuffer::shared(bytes); });
  PullingNode node({{"w1", {"127.0.0.1"}, peer.port()}}, elements);
  check_refusals(peer, node);
}

TEST_CASE("memory refused anywhere in taking a first connection does not make a node deaf") {
  int refusals = 0;
  bool refused = true;
  for (std::uint64_t skipped = 0; refused && skipped < 200; ++skipped) {
    CAPTURE(skipped);
    ServerOptions options;
    options.same_host = false;  // nothing else keeps its thread at work
    ServedNode node(16, options);
    test::refuse_one(skipped);
    {
      test::RawSocket first(node.port());
      first.send(wire::encode(test::sound_hello(), 1));
      first.stirs_within(std::chrono::milliseconds(100));
    }
    refused = test::refuse_none();
    refusals += refused ? 1 : 0;
    REQUIRE(node.serves_an_honest_peer());
  }
  CHECK(refusals > 5);
}

}  // namespace dpwa
