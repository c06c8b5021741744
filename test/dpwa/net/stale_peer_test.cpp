#include <doctest/doctest.h>

#include "test/dpwa/net/one_peer.h"

// A peer that lags, over its connection. What a node makes of one that has stopped is in
// test/dpwa/engine/pull_engine_test.cpp.

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::OnePeer;
using test::PullSeen;
using test::RawSocket;
using test::sound_reply;

}  // namespace

TEST_CASE("a peer that lags too far is stale and leaves the model alone") {
  OnePeer pair(
      [](RawSocket& socket, const PullSeen& request) { socket.send(sound_reply(request)); },
      test::patience, [](Config& config) { config.gossip.max_staleness = 5; });
  for (int i = 0; i < 6; ++i) pair.node().gossip().publish([] { return 1.0; });
  pair.check_harmless(Outcome::stale);
}

}  // namespace dpwa
