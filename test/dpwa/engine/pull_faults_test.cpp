// What pulls cost while peers fail, refuse or are slow, and that they are used again.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/support/sanitized.h"
#include "test/world/gossip_cluster.h"

namespace dpwa::world::testing {
namespace {

using namespace std::chrono_literals;

// How a node treats the others.
enum class Behaviour {
  serving,    // trains and answers
  refusing,   // trains, but nobody can connect to it
  busy,       // trains, but has no capacity for replies
  rejecting,  // trains, but belongs to another cluster
  late,       // trains, but answers just before the deadline
  frozen,     // answers, but its trainer stands still
  down,       // does nothing, and refuses connections
};

struct RoundRecord {
  std::size_t node = 0;
  std::size_t peer = 0;  // that answered, with mixed; else the last one tried
  std::size_t attempts = 0;
  std::size_t unchanged = 0;  // of these, answers that the peer has nothing new
  Outcome outcome = Outcome::skipped;
  Duration took{};
};

// Without gradients.
class PullingNode : public Conduct {
 public:
  explicit PullingNode(std::size_t index) : index_(index) { begins_at_once = true; }

  void set(Behaviour behaviour) {
    behaviour_ = behaviour;
    stands_still = behaviour == Behaviour::frozen || behaviour == Behaviour::down;
    calls = !stands_still;
  }

  Model initial(Random& random) override {
    Model model = Conduct::initial(random);
    model.origin = 1;
    return model;
  }
  void train(Model&, Random&) override {}
  std::optional<PeerFailure> turns_away(const std::string&) override {
    if (behaviour_ == Behaviour::rejecting) return PeerFailure::rejected;
    const bool refuses = behaviour_ == Behaviour::refusing || behaviour_ == Behaviour::down;
    return refuses ? std::optional(PeerFailure::unreachable) : std::nullopt;
  }
  std::optional<Duration> answers(const GossipQuery& query, GossipReply& reply) override {
    if (query.pull && behaviour_ == Behaviour::busy) reply.failure = PeerFailure::busy;
    return query.pull && behaviour_ == Behaviour::late ? Duration(489ms) : Duration::zero();
  }
  void settled(const std::string& peer, std::optional<PeerFailure> failure) override {
    ++attempts[index_of(peer)];
    ++round_.attempts;
    round_.unchanged += failure == PeerFailure::unchanged ? 1 : 0;
  }
  void ended_round(const Arrival& arrival) override {
    round_.node = round_.peer = index_;
    if (arrival.peer) round_.peer = index_of(arrival.peer_name);
    round_.outcome = arrival.outcome;
    round_.took = arrival.took;
    rounds.push_back(std::exchange(round_, {}));
  }

  // Since the last clear().
  std::vector<RoundRecord> rounds;
  std::map<std::size_t, std::size_t> attempts;  // by peer

 private:
  static std::size_t index_of(const std::string& name) { return std::stoul(name.substr(1)); }

  const std::size_t index_;
  Behaviour behaviour_ = Behaviour::serving;
  RoundRecord round_;
};

class PullingCluster : public GossipCluster<PullingNode> {
 public:
  explicit PullingCluster(std::size_t nodes, Duration latency = 1ms, std::uint64_t seed = 1)
      : GossipCluster(seed, without_deaths(), {.delay = latency / 2, .jitter = {}}) {
    for (std::size_t i = 0; i < nodes; ++i) add(i);
    start_all();
  }

  void set(std::size_t node, Behaviour behaviour) { this->node(node).set(behaviour); }
  void set_first(std::size_t count, Behaviour behaviour) {
    for (std::size_t i = 0; i < count; ++i) set(i, behaviour);
  }
  void clear() {
    for (const auto& node : nodes()) {
      node->rounds.clear();
      node->attempts.clear();
    }
  }
  std::vector<RoundRecord> rounds() const {
    std::vector<RoundRecord> all;
    for (const auto& node : nodes())
      all.insert(all.end(), node->rounds.begin(), node->rounds.end());
    return all;
  }
  // Of the attempts made by the nodes from `count` on, the share that went to those before it.
  double share_of_first(std::size_t count) const {
    double to_first = 0, all = 0;
    for (std::size_t i = count; i < size(); ++i) {
      for (const auto& [peer, attempts] : nodes()[i]->attempts) {
        all += static_cast<double>(attempts);
        to_first += peer < count ? static_cast<double>(attempts) : 0;
      }
    }
    return to_first / all;
  }
  // Rounds of this node that blended.
  std::size_t blends(std::size_t node) const {
    return static_cast<std::size_t>(
        std::ranges::count(nodes()[node]->rounds, Outcome::mixed, &RoundRecord::outcome));
  }

 private:
  // Those that fail stay peers to be chosen: what spares them is the table of peers.
  static GossipOptions without_deaths() {
    GossipOptions options;
    options.timeout = 500ms;
    options.steps_to_checkpoint = 0;
    options.membership.suspect = 24h;
    options.trainer.spread_pulls = false;
    options.pulls.firewall.distance = DistancePolicy::warn;
    options.ledger = false;
    return options;
  }
};

TEST_CASE("without faults every node asks all others equally often and blends every round") {
  PullingCluster cluster(48);
  cluster.run(1s);  // all train
  cluster.clear();
  cluster.run(20s);
  for (const RoundRecord& round : cluster.rounds()) {
    REQUIRE(round.outcome == Outcome::mixed);
    REQUIRE(round.attempts - round.unchanged == 1);  // one peer that had something new
  }
  CHECK(cluster.share_of_first(24) == doctest::Approx(24.0 / 47).epsilon(0.02));
  for (const auto& node : cluster.nodes()) {
    CHECK(node->rounds.size() > 950);
    CHECK(node->attempts.size() == 47);
  }
}

TEST_CASE("with a third of the nodes refusing no round is wasted, and they are used again") {
  for (const Behaviour behaviour : {Behaviour::refusing, Behaviour::down}) {
    CAPTURE(static_cast<int>(behaviour));
    PullingCluster cluster(48);
    cluster.run(2s);
    cluster.set_first(16, behaviour);
    cluster.run(20ms);  // replies are under way
    cluster.clear();
    cluster.run(20s);
    std::size_t retried = 0;
    for (const RoundRecord& round : cluster.rounds()) {
      REQUIRE(round.outcome == Outcome::mixed);
      REQUIRE(round.peer >= 16);
      REQUIRE(round.took < 500ms);
      retried += round.attempts > 1;
    }
    CHECK(retried > 100);  // others were chosen within the round
    CHECK(cluster.share_of_first(16) < 0.12);

    cluster.set_first(16, Behaviour::serving);
    cluster.run(30s);
    cluster.clear();
    cluster.run(5s);
    CHECK(cluster.share_of_first(16) == doctest::Approx(16.0 / 47).epsilon(0.1));
  }
}

TEST_CASE("nodes that were down for minutes are used again, in small clusters as in large ones") {
  for (const std::size_t nodes : {4, 8, 48}) {
    CAPTURE(nodes);
    PullingCluster cluster(nodes);
    cluster.set_first(nodes / 2, Behaviour::down);
    cluster.run(180s);
    cluster.set_first(nodes / 2, Behaviour::serving);
    cluster.run(20s);
    cluster.clear();
    cluster.run(10s);
    const double uniform = static_cast<double>(nodes / 2) / static_cast<double>(nodes - 1);
    CHECK(cluster.share_of_first(nodes / 2) == doctest::Approx(uniform).epsilon(0.15));
  }
}

TEST_CASE("a stalled node costs one deadline a try, is avoided, and is used again") {
  PullingCluster cluster(8);
  cluster.run(2s);
  cluster.clear();
  cluster.world().freeze(0);
  cluster.run(20s);
  std::vector<std::size_t> lost(8);
  for (const RoundRecord& round : cluster.rounds()) {
    REQUIRE(round.took <= 500ms);  // and the next peer does not extend it
    if (round.outcome != Outcome::mixed) {
      CHECK(round.outcome == Outcome::timed_out);
      ++lost[round.node];
    }
  }
  for (std::size_t i = 1; i < 8; ++i) {
    CHECK(lost[i] >= 1);
    // Without back-off and scores each node would lose about 37 of its rounds in 20 s.
    CHECK(lost[i] <= 12);
    CHECK(cluster.member(i).engine().table().at(0).retry_at > TimePoint{});
  }

  cluster.world().wake(0);
  cluster.run(5s);
  cluster.clear();
  cluster.run(10s);
  CHECK(cluster.share_of_first(1) == doctest::Approx(1.0 / 7).epsilon(0.2));
  for (const RoundRecord& round : cluster.rounds()) REQUIRE(round.outcome == Outcome::mixed);
}

TEST_CASE("a node that serves no peer in time gains nothing by calling") {
  // Its own pulls tell the others, again and again, that it lives.
  PullingCluster calling(8), quiet(8);
  calling.set(0, Behaviour::refusing);
  quiet.set(0, Behaviour::down);
  calling.run(60s);
  quiet.run(60s);
  calling.clear();
  quiet.clear();
  calling.run(60s);
  quiet.run(60s);
  CHECK(quiet.share_of_first(1) < 0.01);
  CHECK(calling.share_of_first(1) < 0.01);
}

TEST_CASE("with every peer down there is no storm of attempts") {
  PullingCluster cluster(48);
  cluster.run(1s);
  for (std::size_t i = 1; i < cluster.size(); ++i) cluster.set(i, Behaviour::down);
  cluster.run(30s);  // back-offs reach their longest
  cluster.clear();
  cluster.run(30s);
  // 47 peers, each tried again as soon as 470 ms have passed: the node is cut off.
  double attempts = 0;
  for (const auto& [peer, count] : cluster.node(0).attempts) attempts += static_cast<double>(count);
  const double per_peer_and_second = attempts / 47 / 30;
  CHECK(per_peer_and_second < 2.2);
  CHECK(per_peer_and_second > 0.1);  // but nobody is given up

  // A peer that calls is asked at once, long before its back-off would have ended.
  cluster.set(7, Behaviour::serving);
  cluster.clear();
  cluster.run(1s);
  CHECK(cluster.blends(0) > 20);
}

TEST_CASE("busy and rejecting peers cause no storm either") {
  for (const auto& [behaviour, bound] :
       {std::pair{Behaviour::busy, 25.0}, std::pair{Behaviour::rejecting, 0.4}}) {
    CAPTURE(static_cast<int>(behaviour));
    PullingCluster cluster(2);
    cluster.set(1, behaviour);
    cluster.run(5s);
    cluster.clear();
    cluster.run(60s);
    const auto attempts = static_cast<double>(cluster.node(0).attempts[1]);
    CHECK(attempts / 60 < bound);
    CHECK(attempts > 5);
  }
}

TEST_CASE("restarted nodes take over weights before they count, and are used at once") {
  PullingCluster cluster(12);
  cluster.run(5s);
  for (std::size_t i = 0; i < 4; ++i) cluster.world().kill(i);
  cluster.run(60s);
  for (std::size_t i = 0; i < 4; ++i) {
    cluster.node(i).begins_at_once = false;
    cluster.world().start(i);
  }
  cluster.run(1s);
  const GossipMember& last = cluster.member(11);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(cluster.member(i).lineage() == 1);
    CHECK(std::abs(cluster.member(i).clock() - last.clock()) < 10);
    CHECK(std::abs(cluster.member(i).model().values[0] - last.model().values[0]) < 1e-6);
    CHECK(last.engine().table().at(static_cast<PeerId>(i)).score == 1000);
  }
  cluster.clear();
  cluster.run(10s);
  CHECK(cluster.share_of_first(4) == doctest::Approx(4.0 / 11).epsilon(0.1));
}

TEST_CASE("a frozen peer is blended once at most, and again once it trains") {
  for (const std::size_t nodes : {2, 16}) {
    CAPTURE(nodes);
    PullingCluster cluster(nodes);
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
    PullingCluster cluster(4);
    cluster.set(0, behaviour);
    cluster.run(60s);  // until it is known
    cluster.clear();
    cluster.run(60s);
    return static_cast<double>(cluster.blends(1) + cluster.blends(2) + cluster.blends(3));
  };
  CHECK(blends(Behaviour::late) > 0.85 * blends(Behaviour::serving));
}

TEST_CASE("one that answers just before the deadline is known for it within two seconds" *
          doctest::skip(test::sanitized)) {
  // Over runs with other seeds: in 15 of 1,000 the first two seconds alone bring less than 0.4.
  double late_at_first = 0;
  double serving_at_first = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    // Blends of the other three: in the first two seconds, and in the eight after that.
    const auto blends = [seed](Behaviour behaviour) {
      PullingCluster cluster(4, 1ms, seed);
      cluster.set(0, behaviour);
      std::vector<double> counts;
      for (const Duration time : {2s, 8s}) {
        cluster.clear();
        cluster.run(time);
        counts.push_back(
            static_cast<double>(cluster.blends(1) + cluster.blends(2) + cluster.blends(3)));
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
    PullingCluster cluster(4, latency);
    cluster.run(60s);
    const double most = 4 * Duration(60s) / (latency + cluster.node(0).step_time);
    std::size_t pulls = 0;
    for (std::size_t node = 0; node < 4; ++node) {
      pulls += cluster.blends(node);
      for (const auto& [peer, asked] : cluster.node(node).attempts)
        CHECK(static_cast<double>(asked) > 0.2 * most / 4);
    }
    CHECK(static_cast<double>(pulls) > 0.9 * most);
  }
}

TEST_CASE("a slow link among quick ones is still used now and then") {
  PullingCluster cluster(8);
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

}  // namespace
}  // namespace dpwa::world::testing
