#include <doctest/doctest.h>

#include "test/dpwa/net/one_peer.h"

// What a node makes of a peer that lags or has stopped.

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

TEST_CASE("a peer whose clock stands still is blended for a while and then no more") {
  std::uint64_t version = 0;
  OnePeer pair(
      [&version](RawSocket& socket, const PullSeen& request) {
        Progress progress = test::sound_progress();
        progress.version = ++version;
        socket.send(test::snapshot_frame(request, test::vector_of(2.5F), progress));
      },
      test::patience, [](Config& config) { config.gossip.max_frozen = 200ms; });
  CHECK(pair.step().outcome == Outcome::mixed);
  CHECK(test::eventually([&] { return pair.step().outcome == Outcome::stale; }));
  const float reached = pair.node().values()[0];
  for (int i = 0; i < 5; ++i) CHECK(pair.step().outcome != Outcome::mixed);
  CHECK(pair.node().values()[0] == reached);
}

TEST_CASE("a peer that publishes no more is passed over, then stale, and blended when it goes on") {
  test::VectorCluster cluster(2, 16, [](Config& config) {
    config.gossip.step_budget = config.gossip.timeout;
    config.gossip.max_frozen = 200ms;
  });
  cluster.start();
  const auto step = [&cluster] {
    cluster.at(0).gossip().update_send([] { return 1.0; });
    return cluster.at(0).gossip().update_wait().outcome;
  };
  CHECK(step() == Outcome::mixed);
  CHECK(step() == Outcome::skipped);  // it has nothing new
  CHECK(test::eventually([&] { return step() == Outcome::stale; }));
  cluster.at(1).gossip().publish([] { return 1.0; });
  CHECK(test::eventually([&] { return step() == Outcome::mixed; }));
}

}  // namespace dpwa
