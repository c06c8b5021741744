#include <doctest/doctest.h>

#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/replaying_peer.h"
#include "test/support/eventually.h"

// What a node makes of a peer that sends a version again that has been taken from it already.

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::PullingNode;
using test::ReplayingPeer;

// Of the only peer, backing off or not.
Outcome outcome_of_next(PullingNode& node, unsigned block = 0, bool blends = true) {
  PullSpec spec;
  spec.peer = 0;
  spec.timeout = 30s;
  spec.block = block;
  spec.blends = blends;
  if (block > 0) spec.range = ByteRange{0, 64};
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

TEST_CASE("an older version than one that was taken is refused, and a newer one is taken") {
  ReplayingPeer peer({7, 6, 8, 8});
  PullingNode node({peer.address()});
  CHECK(outcome_of_next(node) == Outcome::mixed);
  CHECK(outcome_of_next(node) == Outcome::rejected);
  CHECK(outcome_of_next(node) == Outcome::mixed);
  CHECK(outcome_of_next(node) == Outcome::rejected);
}

TEST_CASE("another block of the same version is taken, once") {
  ReplayingPeer peer({7});
  PullingNode node({peer.address()});
  CHECK(outcome_of_next(node, 1) == Outcome::mixed);
  CHECK(outcome_of_next(node, 2) == Outcome::mixed);
  CHECK(outcome_of_next(node, 1) == Outcome::rejected);
}

TEST_CASE("a pull that only compares, and a full one, may bring the same version again") {
  ReplayingPeer peer({7});
  PullingNode node({peer.address()});
  for (int i = 0; i < 3; ++i) CHECK(outcome_of_next(node, 0, false) == Outcome::mixed);
  CHECK(outcome_of_next(node) == Outcome::mixed);
  CHECK(outcome_of_next(node, 0, false) == Outcome::mixed);
  CHECK(node.pull(full_pull(0, 30s)).outcome == Outcome::mixed);
}

}  // namespace dpwa
