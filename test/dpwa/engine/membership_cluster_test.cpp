// Who is in a cluster of up to two hundred nodes, among which news travels with the pulls.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/world/gossip_cluster.h"

namespace dpwa::world::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto round_time = 500ms;
constexpr std::size_t usual_size = 200;

struct Talk {
  double loss = 0;          // of one exchange
  std::size_t largest = 0;  // claims in one message, so far
};

// Trains from the first moment, without gradients: a pull a round.
class TalkingNode : public Conduct {
 public:
  TalkingNode(Talk& talk, std::uint64_t seed) : talk_(talk), random_(seed) {
    step_time = round_time;
    begins_at_once = true;
  }
  Model initial(Random&) override { return {.values = {0}, .origin = 1}; }
  void train(Model&, Random&) override {}
  std::optional<Duration> answers(const GossipQuery& query, GossipReply& reply) override {
    if (query.members)
      talk_.largest =
          std::max({talk_.largest, query.members->claims.size(), reply.members.claims.size()});
    return random_.bernoulli(talk_.loss) ? std::nullopt : std::optional(Duration::zero());
  }

 private:
  Talk& talk_;
  Random random_;
};

// The file names the first three nodes.
class TalkingCluster : public GossipCluster<TalkingNode> {
 public:
  explicit TalkingCluster(std::uint64_t seed, std::size_t count = usual_size)
      : GossipCluster(seed, options_of_talk(), {.through_cut = 0}, 3) {
    for (std::size_t i = 0; i < count; ++i) add(talk, i);
    start_all();
  }

  // Another one joins.
  std::size_t join() {
    add(talk, size());
    world().start(size() - 1);
    return size() - 1;
  }
  void run_rounds(int count) { run(count * round_time); }
  // Rounds until `done`, or `most` + 1.
  int rounds_until(const std::function<bool()>& done, int most) {
    int rounds = 0;
    for (; rounds <= most && !done(); ++rounds) run_rounds(1);
    return rounds;
  }

  // How many of the running nodes hold `node` as `status`; those that never heard of it do not.
  std::size_t holding(std::size_t node, MemberStatus status) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      const Member* const known =
          world().runs(i) ? member(i).members().member(world().name(node)) : nullptr;
      count += known != nullptr && known->status() == status ? 1 : 0;
    }
    return count;
  }
  // Each running node holds those to be alive that run in its network, and nobody else.
  // `network_of`: none: all are in one.
  bool agreed(const std::function<bool(std::size_t)>& network_of = {}) {
    const auto reach = [&](std::size_t a, std::size_t b) {
      return world().runs(b) && (!network_of || network_of(a) == network_of(b));
    };
    for (std::size_t i = 0; i < size(); ++i) {
      if (!world().runs(i)) continue;
      std::size_t alive = 0;
      for (const Member& other : member(i).members().members()) {
        if (other.claim.name.empty() || other.status() != MemberStatus::alive) continue;
        if (!reach(i, std::stoul(other.claim.name.substr(1)))) return false;
        ++alive;
      }
      std::size_t reachable = 0;
      for (std::size_t other = 0; other < size(); ++other)
        reachable += other != i && reach(i, other) ? 1 : 0;
      if (alive != reachable) return false;
    }
    return true;
  }
  bool digests_equal() {
    std::optional<std::uint64_t> digest;
    for (std::size_t i = 0; i < size(); ++i) {
      if (!world().runs(i)) continue;
      if (digest && *digest != member(i).members().digest()) return false;
      digest = member(i).members().digest();
    }
    return true;
  }
  std::size_t running() {
    std::size_t count = 0;
    for (std::size_t i = 0; i < size(); ++i) count += world().runs(i) ? 1 : 0;
    return count;
  }
  // Running nodes that others hold to be dead, and changes of all tables since their starts.
  std::size_t buried() {
    std::size_t count = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      for (const Member& other : member(i).members().members())
        count += other.status() == MemberStatus::dead ? 1 : 0;
    }
    return count;
  }
  std::uint64_t changes() {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < size(); ++i) sum += member(i).members().version();
    return sum;
  }

  Talk talk;

 private:
  static GossipOptions options_of_talk() {
    GossipOptions options;
    options.steps_to_checkpoint = 0;
    options.ledger = false;
    options.pulls.firewall.distance = DistancePolicy::off;
    return options;
  }
};

// All know of all, and the news of that is old.
void settle(TalkingCluster& run) {
  REQUIRE(run.rounds_until([&] { return run.agreed(); }, 200) <= 200);
  run.run_rounds(30);
  REQUIRE(run.agreed());
}

TEST_CASE("nodes that know three seeds alone come to know all of two hundred") {
  TalkingCluster run(1);
  const int rounds = run.rounds_until([&] { return run.agreed(); }, 60);
  MESSAGE("all of ", usual_size, " nodes know all in ", rounds, " rounds");
  CHECK(rounds <= 60);
  CHECK(run.rounds_until([&] { return run.digests_equal(); }, 60) <= 60);
  CHECK(run.talk.largest <= Membership::max_claims);
}

TEST_CASE("one that joins is known to all in O(log n) rounds") {
  for (const std::size_t count : {std::size_t{30}, std::size_t{100}, usual_size}) {
    TalkingCluster run(2, count);
    REQUIRE(run.rounds_until([&] { return run.agreed() && run.digests_equal(); }, 200) <= 200);
    const std::size_t late = run.join();
    const int rounds =
        run.rounds_until([&] { return run.holding(late, MemberStatus::alive) == count; }, 100);
    MESSAGE("a join reaches all of ", count, " nodes in ", rounds, " rounds");
    CHECK(rounds <= 4 * std::log2(static_cast<double>(count)));
    // The newcomer's own table takes parts of it at a time.
    CHECK(run.rounds_until([&] { return run.agreed(); }, 30) <= 30);
  }
}

TEST_CASE("one that leaves is held to have left by all, in O(log n) rounds, and never comes back") {
  TalkingCluster run(1);
  settle(run);
  run.member(77).leave();
  const auto all_know = [&] { return run.holding(77, MemberStatus::left) == run.running(); };
  CHECK(run.rounds_until(all_know, 100) <= 4 * std::log2(static_cast<double>(usual_size)));
  for (int i = 0; i < 60; ++i) {
    run.run_rounds(1);
    CHECK(run.holding(77, MemberStatus::alive) == 0);
  }
}

TEST_CASE(
    "one that crashes is suspected, then dead to all, and alive to all soon after a restart") {
  TalkingCluster run(1);
  settle(run);
  run.world().kill(123);
  const int rounds =
      run.rounds_until([&] { return run.holding(123, MemberStatus::dead) == run.running(); }, 200);
  MESSAGE("a crash is known to all in ", rounds * 0.5, " s");
  // Three failed pulls by one node, five seconds times log10(200), and the spreading of both.
  CHECK(rounds <= 60);
  CHECK(run.agreed());
  run.world().start(123);
  CHECK(run.rounds_until([&] { return run.agreed(); }, 60) <= 60);
}

TEST_CASE("a suspicion that is wrong is refuted before anybody is dead, and stays refuted") {
  TalkingCluster run(1);
  settle(run);
  for (int i = 0; i < 3; ++i) run.member(9).members().failed("w42", run.member(9).now());
  REQUIRE(run.holding(42, MemberStatus::suspect) == 1);
  bool died = false;
  for (int i = 0; i < 80; ++i) {
    run.run_rounds(1);
    died = died || run.holding(42, MemberStatus::dead) > 0;
  }
  CHECK_FALSE(died);
  CHECK(run.agreed());
  CHECK(run.member(42).members().self().refutation == 1);
  CHECK(run.digests_equal());
}

TEST_CASE(
    "two halves of a split network bury each other, and find each other again by themselves") {
  TalkingCluster run(1);
  settle(run);
  const auto network_of = [](std::size_t node) { return node % 2 == 0; };
  run.world().split(network_of);
  const int apart = run.rounds_until([&] { return run.agreed(network_of); }, 400);
  MESSAGE("a split in two halves is known to all in ", apart * 0.5, " s");
  REQUIRE(apart <= 400);
  run.run_rounds(20);
  REQUIRE(run.agreed(network_of));
  run.world().heal();
  const int healed = run.rounds_until([&] { return run.agreed(); }, 200);
  MESSAGE("a split of ", usual_size, " nodes heals in ", healed, " rounds");
  CHECK(healed <= 120);
  CHECK(run.rounds_until([&] { return run.digests_equal(); }, 60) <= 60);
  run.run_rounds(40);
  CHECK(run.agreed());
}

TEST_CASE("with one exchange in ten lost, no running node is held dead for long") {
  TalkingCluster run(1);
  settle(run);
  run.talk.loss = 0.1;
  std::size_t buried = 0;
  for (int i = 0; i < 100; ++i) {
    run.run_rounds(1);
    buried += run.buried();
  }
  CHECK(buried == 0);
  run.talk.loss = 0;
  CHECK(run.rounds_until([&] { return run.agreed() && run.digests_equal(); }, 60) <= 60);
}

TEST_CASE("while one node in twenty is replaced again and again, the others keep up") {
  TalkingCluster run(8, 120);
  REQUIRE(run.rounds_until([&] { return run.agreed(); }, 200) <= 200);
  std::size_t next = 0;
  for (int wave = 0; wave < 4; ++wave) {
    for (int i = 0; i < 6; ++i) {
      const std::size_t node = 3 + (next++ * 7) % 110;
      if (!run.world().runs(node)) continue;
      if (i % 2 == 0) run.world().kill(node);
      if (i % 2 == 1) run.member(node).leave();
      run.join();
    }
    run.run_rounds(20);
  }
  CHECK(run.rounds_until([&] { return run.agreed(); }, 100) <= 100);
}

TEST_CASE("one that starts again under an earlier clock is known to all, and stays known") {
  TalkingCluster run(10, 60);
  run.run_rounds(100);
  REQUIRE(run.agreed());
  for (const bool is_dead : {false, true}) {
    CAPTURE(is_dead);
    run.world().kill(7);
    if (is_dead) REQUIRE(run.rounds_until([&] { return run.agreed(); }, 100) <= 100);
    run.world().shift_clock(7, -1h);
    run.world().start(7);
    const int rounds = run.rounds_until([&] { return run.agreed() && run.digests_equal(); }, 200);
    MESSAGE("an earlier clock is known to all of 60 nodes in ", rounds, " rounds");
    CHECK(rounds <= 200);
    std::size_t buried = 0;
    for (int i = 0; i < 100; ++i) {
      run.run_rounds(1);
      buried += run.agreed() ? 0 : 1;
    }
    CHECK(buried == 0);
    CHECK(run.digests_equal());
  }
}

TEST_CASE("in a quiet cluster nothing changes and nothing but each node's own claim is said") {
  TalkingCluster run(9, 60);
  run.run_rounds(600);  // each has reached each of the others
  const auto before = run.changes();
  run.talk.largest = 0;
  run.run_rounds(100);
  CHECK(run.changes() == before);
  CHECK(run.talk.largest == 1);
}

}  // namespace
}  // namespace dpwa::world::testing
