#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "test/dpwa/engine/virtual_cluster.h"

using namespace std::chrono_literals;
using dpwa::Duration;
using dpwa::Outcome;
using dpwa::test::Attempt;
using dpwa::test::Behaviour;
using dpwa::test::ClusterOptions;
using dpwa::test::RoundRecord;
using dpwa::test::VirtualCluster;

namespace {

// Nodes [0, count) take this behaviour.
void set_first(VirtualCluster& cluster, std::size_t count, Behaviour behaviour) {
  for (std::size_t i = 0; i < count; ++i) cluster.set(i, behaviour);
}

// Of the attempts made by the nodes from `count` on, the share that went to those before it.
double share_of_first(const VirtualCluster& cluster, std::size_t count) {
  double to_first = 0, all = 0;
  for (const Attempt& attempt : cluster.attempts()) {
    if (attempt.node < count) continue;
    ++all;
    to_first += attempt.peer < count;
  }
  return to_first / all;
}

ClusterOptions small(std::size_t nodes) {
  ClusterOptions options;
  options.nodes = nodes;
  return options;
}

}  // namespace

TEST_CASE("with a third of the nodes refusing no round is wasted, and they are used again") {
  for (const Behaviour behaviour : {Behaviour::refusing, Behaviour::down}) {
    CAPTURE(static_cast<int>(behaviour));
    VirtualCluster cluster{ClusterOptions{}};
    cluster.run(2s);
    cluster.clear();
    set_first(cluster, 16, behaviour);
    const dpwa::TimePoint fault = cluster.now();
    cluster.run(20s);
    std::size_t retried = 0;
    for (const RoundRecord& round : cluster.rounds()) {
      if (round.began < fault) continue;  // its reply was under way
      REQUIRE(round.outcome == Outcome::mixed);
      REQUIRE(round.peer >= 16);
      REQUIRE(round.ended - round.began < 500ms);
      retried += round.attempts > 1;
    }
    CHECK(retried > 100);  // others were chosen within the round
    CHECK(share_of_first(cluster, 16) < 0.12);

    set_first(cluster, 16, Behaviour::serving);
    cluster.run(30s);
    cluster.clear();
    cluster.run(5s);
    CHECK(share_of_first(cluster, 16) == doctest::Approx(16.0 / 47).epsilon(0.1));
  }
}

TEST_CASE("nodes that were down for minutes are used again, in small clusters as in large ones") {
  for (const std::size_t nodes : {4, 8, 48}) {
    CAPTURE(nodes);
    VirtualCluster cluster(small(nodes));
    set_first(cluster, nodes / 2, Behaviour::down);
    cluster.run(180s);
    set_first(cluster, nodes / 2, Behaviour::serving);
    cluster.run(20s);
    cluster.clear();
    cluster.run(10s);
    const double uniform = static_cast<double>(nodes / 2) / static_cast<double>(nodes - 1);
    CHECK(share_of_first(cluster, nodes / 2) == doctest::Approx(uniform).epsilon(0.15));
  }
}

TEST_CASE("a stalled node costs one deadline a try, is avoided, and is used again") {
  VirtualCluster cluster(small(8));
  cluster.run(2s);
  cluster.clear();
  cluster.set(0, Behaviour::silent);
  cluster.run(20s);
  std::vector<std::size_t> lost(8);
  for (const RoundRecord& round : cluster.rounds()) {
    REQUIRE(round.ended - round.began <= 500ms);  // and the next peer does not extend it
    if (round.outcome != Outcome::mixed) {
      CHECK(round.outcome == Outcome::timed_out);
      ++lost[round.node];
    }
  }
  for (std::size_t i = 1; i < 8; ++i) {
    CHECK(lost[i] >= 1);
    // Without back-off and scores each node would lose about 37 of its rounds in 20 s.
    CHECK(lost[i] <= 12);
    CHECK(cluster.record(i, 0).retry_at > dpwa::TimePoint{});
  }

  cluster.set(0, Behaviour::serving);
  cluster.run(5s);
  cluster.clear();
  cluster.run(10s);
  CHECK(share_of_first(cluster, 1) == doctest::Approx(1.0 / 7).epsilon(0.2));
  for (const RoundRecord& round : cluster.rounds()) REQUIRE(round.outcome == Outcome::mixed);
}

TEST_CASE("a node that serves no peer in time gains nothing by calling") {
  // Its own pulls tell the others, again and again, that it lives.
  VirtualCluster calling(small(8)), quiet(small(8));
  calling.set(0, Behaviour::refusing);
  quiet.set(0, Behaviour::down);
  calling.run(60s);
  quiet.run(60s);
  calling.clear();
  quiet.clear();
  calling.run(60s);
  quiet.run(60s);
  CHECK(share_of_first(quiet, 1) < 0.01);
  CHECK(share_of_first(calling, 1) < 0.01);
}

TEST_CASE("with every peer down there is no storm of attempts") {
  VirtualCluster cluster{ClusterOptions{}};
  cluster.run(1s);
  for (std::size_t i = 1; i < cluster.size(); ++i) cluster.set(i, Behaviour::down);
  cluster.run(30s);  // back-offs reach their longest
  cluster.clear();
  cluster.run(30s);
  // 47 peers, each tried again as soon as 470 ms have passed: the node is cut off.
  const double per_peer_and_second = static_cast<double>(cluster.attempts().size()) / 47 / 30;
  CHECK(per_peer_and_second < 2.2);
  CHECK(per_peer_and_second > 0.1);  // but nobody is given up

  // A peer that calls is asked at once, long before its back-off would have ended.
  cluster.set(7, Behaviour::serving);
  cluster.clear();
  cluster.run(1s);
  std::size_t answered = 0;
  for (const RoundRecord& round : cluster.rounds()) {
    answered += round.node == 0 && round.outcome == Outcome::mixed;
  }
  CHECK(answered > 20);
}

TEST_CASE("busy and rejecting peers cause no storm either") {
  for (const auto& [behaviour, bound] :
       {std::pair{Behaviour::busy, 25.0}, std::pair{Behaviour::rejecting, 0.4}}) {
    CAPTURE(static_cast<int>(behaviour));
    VirtualCluster cluster(small(2));
    cluster.set(1, behaviour);
    cluster.run(5s);
    cluster.clear();
    cluster.run(60s);
    double attempts = 0;
    for (const Attempt& attempt : cluster.attempts()) attempts += attempt.node == 0;
    CHECK(attempts / 60 < bound);
    CHECK(attempts > 5);
  }
}

TEST_CASE("restarted nodes pull in full before they count, and are used at once") {
  VirtualCluster cluster(small(12));
  cluster.run(5s);
  set_first(cluster, 4, Behaviour::down);
  cluster.run(60s);
  for (std::size_t i = 0; i < 4; ++i) cluster.restart(i);
  CHECK(cluster.parameters(0).empty());
  cluster.run(1s);
  const double clock = cluster.progress(11).clock;
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(cluster.progress(i).lineage == 1);
    CHECK(std::abs(cluster.progress(i).clock - clock) < 10);
    CHECK(cluster.record(11, i).incarnation == 2);
    CHECK(cluster.record(11, i).score == 1000);
  }
  CHECK(cluster.consensus_variance() < 1e-9);
  cluster.clear();
  cluster.run(10s);
  CHECK(share_of_first(cluster, 4) == doctest::Approx(4.0 / 11).epsilon(0.1));
}

TEST_CASE("a frozen peer is blended once at most, and again once it trains") {
  for (const std::size_t nodes : {2, 16}) {
    CAPTURE(nodes);
    VirtualCluster cluster(small(nodes));
    cluster.run(5s);
    cluster.set(0, Behaviour::frozen);
    cluster.run(2s);  // every node has met it frozen
    cluster.clear();
    cluster.run(20s);
    std::size_t unchanged = 0;
    for (const RoundRecord& round : cluster.rounds()) {
      REQUIRE((round.peer == 0) == (round.outcome == Outcome::skipped));
      unchanged += round.unchanged;
    }
    CHECK(unchanged > 50);
    cluster.set(0, Behaviour::serving);
    cluster.clear();
    cluster.run(5s);
    std::size_t blended = 0;
    for (const RoundRecord& round : cluster.rounds()) {
      blended += round.peer == 0 && round.outcome == Outcome::mixed;
    }
    CHECK(blended > 50);
  }
}

TEST_CASE("one peer that answers just before the deadline does not slow the others down") {
  const auto blends = [](Behaviour behaviour) {
    VirtualCluster cluster(small(4));
    cluster.set(0, behaviour);
    cluster.run(60s);  // until it is known
    cluster.clear();
    cluster.run(60s);
    std::size_t mixed = 0;
    for (const RoundRecord& round : cluster.rounds())
      mixed += round.node != 0 && round.outcome == Outcome::mixed;
    return static_cast<double>(mixed);
  };
  CHECK(blends(Behaviour::late) > 0.85 * blends(Behaviour::serving));
}

TEST_CASE("one that answers just before the deadline is known for it within two seconds") {
  // Over runs with other seeds: in 15 of 1,000 the first two seconds alone bring less than 0.4.
  double late_at_first = 0;
  double serving_at_first = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    // Blends of the other three: in the first two seconds, and in the eight after that.
    const auto blends = [seed](Behaviour behaviour) {
      ClusterOptions options = small(4);
      options.seed = seed;
      VirtualCluster cluster(options);
      cluster.set(0, behaviour);
      std::vector<double> counts;
      for (const Duration time : {2s, 8s}) {
        cluster.clear();
        cluster.run(time);
        counts.push_back(0);
        for (const RoundRecord& round : cluster.rounds())
          counts.back() += round.node != 0 && round.outcome == Outcome::mixed;
      }
      return counts;
    };
    const auto late = blends(Behaviour::late);
    const auto serving = blends(Behaviour::serving);
    late_at_first += late[0];
    serving_at_first += serving[0];
    CHECK(late[1] > 0.85 * serving[1]);
  }
  CHECK(late_at_first > 0.6 * serving_at_first);
}

TEST_CASE("in a network that is slow everywhere no peer is asked more rarely") {
  for (const Duration latency : {300ms, 450ms}) {
    ClusterOptions options = small(4);
    options.latency = latency;
    VirtualCluster cluster(options);
    cluster.run(60s);
    double pulls = 0;
    for (const RoundRecord& round : cluster.rounds()) pulls += round.outcome == Outcome::mixed;
    const double most = 4 * Duration(60s) / (latency + options.step);
    CHECK(pulls > 0.9 * most);
    for (std::size_t node = 0; node < 4; ++node) {
      for (std::size_t peer = 0; peer < 4; ++peer) {
        if (peer == node) continue;
        const auto asked = std::ranges::count_if(cluster.attempts(), [&](const Attempt& attempt) {
          return attempt.node == node && attempt.peer == peer;
        });
        CHECK(static_cast<double>(asked) > 0.2 * most / 4);
      }
    }
  }
}

TEST_CASE("a slow link among quick ones is still used now and then") {
  VirtualCluster cluster(small(8));
  cluster.set(0, Behaviour::late);
  cluster.run(60s);
  cluster.clear();
  cluster.run(120s);
  for (std::size_t node = 1; node < 8; ++node) {
    std::size_t blended = 0;
    for (const RoundRecord& round : cluster.rounds())
      blended += round.node == node && round.peer == 0 && round.outcome == Outcome::mixed;
    CHECK(blended >= 4);
  }
}
