#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "test/dpwa/net/one_peer.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

// The pair ledger between real nodes. Over TCP and from memory, a pull states what was taken.

namespace dpwa {
namespace {

struct Blends {
  int first = 0, second = 0;
};

// Of two nodes that step by turns; the second one pulls too, or only publishes.
Blends blends_of(bool second_pulls, const std::function<void(Config&)>& tune) {
  test::VectorCluster cluster(2, 8, [&](Config& config) {
    config.gossip.step_budget = config.gossip.timeout;
    tune(config);
  });
  cluster.start();
  Blends blends;
  for (int step = 0; step < 60; ++step) {
    for (const std::size_t node : {0, 1}) {
      Gossip& gossip = cluster.at(node).gossip();
      gossip.publish([] { return 1.0; });
      if (node == 1 && !second_pulls) continue;
      gossip.begin_pull();
      const bool mixed = gossip.update_wait().outcome == Outcome::mixed;
      (node == 0 ? blends.first : blends.second) += mixed ? 1 : 0;
    }
  }
  return blends;
}

}  // namespace

TEST_CASE("two nodes that take from each other go on, over TCP and from memory") {
  for (const bool same_host : {false, true}) {
    CAPTURE(same_host);
    const Blends blends =
        blends_of(true, [&](Config& config) { config.transport.same_host = same_host; });
    CHECK(blends.first > 50);
    CHECK(blends.second > 50);
  }
}

TEST_CASE("from a node that does not take, six pulls at most are blended") {
  for (const bool same_host : {false, true}) {
    CAPTURE(same_host);
    const Blends blends =
        blends_of(false, [&](Config& config) { config.transport.same_host = same_host; });
    CHECK(blends.first >= 3);
    CHECK(blends.first <= 6);
  }
}

TEST_CASE("a pull states what was taken only to a peer that keeps the ledger too") {
  std::uint32_t capabilities = test::sound_hello().capabilities;
  bool expected = false;
  SUBCASE("the peer keeps it") {
    capabilities |= wire::ledger_capability;
    expected = true;
  }
  SUBCASE("the peer is of a release without it") {}
  std::atomic<int> stated{-1};
  test::OnePeer pair(
      [&](test::RawSocket& socket, const test::PullSeen& request) {
        stated = request.pull.taken.has_value() ? 1 : 0;
        socket.send(test::sound_reply(request));
      },
      test::patience, {}, capabilities);
  CHECK(pair.step().outcome == Outcome::mixed);
  CHECK(stated == static_cast<int>(expected));
}

TEST_CASE("a node that stands still gives no snapshot, over TCP and from memory") {
  for (const bool same_host : {false, true}) {
    CAPTURE(same_host);
    test::VectorCluster cluster(2, 8, [&](Config& config) {
      config.gossip.timeout = test::patience;
      config.transport.same_host = same_host;
    });
    cluster.start();
    Gossip& still = cluster.at(1).gossip();
    for (int step = 0; step < 20; ++step) {
      still.update_send([] { return 1.0; });
      still.update_wait();
    }
    // Far longer than its steps took.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const auto blends = [&] {
      Gossip& gossip = cluster.at(0).gossip();
      gossip.publish([] { return 1.0; });
      gossip.begin_pull();
      std::optional<Outcome> outcome;
      test::eventually([&] {
        const StepReport report = gossip.update_wait();
        if (report.outcome != Outcome::pending) outcome = report.outcome;
        return outcome.has_value();
      });
      return outcome == Outcome::mixed;
    };
    for (int round = 0; round < 50; ++round) CHECK_FALSE(blends());
    CHECK(blends());  // rather old than none
  }
}

TEST_CASE("without the ledger a node blends whatever it gets") {
  const Blends all = blends_of(false, [](Config& config) { config.gossip.ledger = false; });
  CHECK(all.first > 55);
  const Blends lerp =
      blends_of(false, [](Config& config) { config.gossip.blend = BlendMode::lerp; });
  CHECK(lerp.first > 55);
  const Blends loss =
      blends_of(false, [](Config& config) { config.interpolation.method = "clock"; });
  CHECK(loss.first > 55);
}

}  // namespace dpwa
