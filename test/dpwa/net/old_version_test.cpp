#include <doctest/doctest.h>

#include "test/dpwa/net/one_peer.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/support/eventually.h"

// A peer that sends a version again that has been taken from it already, and a peer that lags, over
// their connections. What a node makes of them, and of one that has stopped, is in
// test/dpwa/engine/pull_engine_test.cpp.

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::OnePeer;
using test::PullingNode;
using test::PullSeen;
using test::RawSocket;
using test::ReplayingPeer;
using test::sound_reply;

// Of the only peer, backing off or not.
Outcome outcome_of_next(PullingNode& node) {
  PullSpec spec;
  spec.peer = 0;
  spec.timeout = 30s;
  return node.pull(spec).outcome;
}

}  // namespace

TEST_CASE("a version that was taken is refused when it comes again, as a broken protocol is") {
  ReplayingPeer peer({7});
  PullingNode node({peer.address()});
  REQUIRE(outcome_of_next(node) == Outcome::mixed);
  for (int i = 0; i < 3; ++i) CHECK(outcome_of_next(node) == Outcome::rejected);
  node.stop();
  CHECK(test::eventually([&] { return peer.answers() == 4; }));  // counted once it is sent
  CHECK(node.client().table().at(0).last_failure == PeerFailure::protocol);
  CHECK(node.client().table().at(0).pulls_ok == 1);
  CHECK(node.client().firewall().record(0).quarantines == 1);
}

TEST_CASE("a peer that lags too far is stale and leaves the model alone") {
  OnePeer pair(
      [](RawSocket& socket, const PullSeen& request) { socket.send(sound_reply(request)); },
      test::patience, [](Config& config) { config.gossip.max_staleness = 5; });
  for (int i = 0; i < 6; ++i) pair.node().gossip().publish([] { return 1.0; });
  pair.check_harmless(Outcome::stale);
}

}  // namespace dpwa
