#include <doctest/doctest.h>

#include <cmath>

#include "test/dpwa/engine/virtual_membership.h"

namespace dpwa {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::VirtualMembership;

const std::vector<std::string> seeds{"n0", "n1", "n2"};
constexpr auto round_time = milliseconds(500);
constexpr int nodes = 300;

// `count` nodes whose file names three of them.
VirtualMembership cluster(std::uint64_t seed, int count = nodes, MembershipOptions options = {}) {
  VirtualMembership run(seed, options, round_time);
  for (int i = 0; i < count; ++i) run.start("n" + std::to_string(i), seeds);
  return run;
}

// The same once all know of all, and the news of that is old.
const VirtualMembership& settled() {
  static const VirtualMembership settled = [] {
    VirtualMembership run = cluster(1);
    REQUIRE(run.rounds_until([&] { return run.agreed(); }, 200) <= 200);
    for (int i = 0; i < 30; ++i) run.run_round();
    REQUIRE(run.agreed());
    return run;
  }();
  return settled;
}

}  // namespace

TEST_CASE("nodes that know three seeds alone come to know all of some hundred") {
  VirtualMembership run = cluster(1);
  const int rounds = run.rounds_until([&] { return run.agreed(); }, 60);
  MESSAGE("all of ", nodes, " nodes know all in ", rounds, " rounds");
  CHECK(rounds <= 60);
  CHECK(run.rounds_until([&] { return run.digests_equal(); }, 60) <= 60);
  CHECK(run.largest <= Membership::max_claims);
}

TEST_CASE("one that joins by one seed is known to all in O(log n) rounds") {
  for (const int count : {30, 100, nodes}) {
    VirtualMembership run = count == nodes ? settled() : cluster(2, count);
    REQUIRE(run.rounds_until([&] { return run.agreed() && run.digests_equal(); }, 200) <= 200);
    run.start("late", {"n1"});
    const auto all = static_cast<std::size_t>(count);
    const int rounds =
        run.rounds_until([&] { return run.holding("late", MemberStatus::alive) == all; }, 100);
    MESSAGE("a join reaches all of ", count, " nodes in ", rounds, " rounds");
    CHECK(rounds <= 4 * std::log2(count));
    // The newcomer's own table takes parts of it at a time.
    CHECK(run.rounds_until([&] { return run.agreed(); }, 30) <= 30);
  }
}

TEST_CASE("one that leaves is held to have left by all, in O(log n) rounds, and never comes back") {
  VirtualMembership run = settled();
  run.leave(77);
  const auto all_know = [&] { return run.holding("n77", MemberStatus::left) == run.running(); };
  CHECK(run.rounds_until(all_know, 100) <= 4 * std::log2(nodes));
  for (int i = 0; i < 60; ++i) {
    run.run_round();
    CHECK(run.holding("n77", MemberStatus::alive) == 0);
  }
}

TEST_CASE(
    "one that crashes is suspected, then dead to all, and alive to all soon after a restart") {
  VirtualMembership run = settled();
  run.kill(123);
  const int rounds = run.rounds_until(
      [&] { return run.holding("n123", MemberStatus::dead) == run.running(); }, 200);
  MESSAGE("a crash is known to all in ", rounds * 0.5, " s");
  // Three failed pulls by one node, five seconds times log10(300), and the spreading of both.
  CHECK(rounds <= 60);
  CHECK(run.agreed());
  run.restart(123);
  CHECK(run.rounds_until([&] { return run.agreed(); }, 60) <= 60);
}

TEST_CASE("a suspicion that is wrong is refuted before anybody is dead, and stays refuted") {
  VirtualMembership run = settled();
  for (int i = 0; i < 3; ++i) run.of(9).failed("n42", run.now());
  REQUIRE(run.holding("n42", MemberStatus::suspect) == 1);
  bool died = false;
  for (int i = 0; i < 80; ++i) {
    run.run_round();
    died = died || run.holding("n42", MemberStatus::dead) > 0;
  }
  CHECK_FALSE(died);
  CHECK(run.agreed());
  CHECK(run.of(42).self().refutation == 1);
  CHECK(run.digests_equal());
}

TEST_CASE(
    "two halves of a split network bury each other, and find each other again by themselves") {
  VirtualMembership run = settled();
  for (int i = 0; i < nodes; i += 2) run.nodes()[i].network = 1;
  const int apart = run.rounds_until([&] { return run.agreed(); }, 400);
  MESSAGE("a split in two halves is known to all in ", apart * 0.5, " s");
  REQUIRE(apart <= 400);
  for (int i = 0; i < 20; ++i) run.run_round();
  REQUIRE(run.agreed());
  for (auto& node : run.nodes()) node.network = 0;
  const int healed = run.rounds_until([&] { return run.agreed(); }, 200);
  MESSAGE("a split of ", nodes, " nodes heals in ", healed, " rounds");
  CHECK(healed <= 120);
  CHECK(run.rounds_until([&] { return run.digests_equal(); }, 60) <= 60);
  for (int i = 0; i < 40; ++i) run.run_round();
  CHECK(run.agreed());
}

TEST_CASE("with one exchange in ten lost, no running node is held dead for long") {
  VirtualMembership run = settled();
  run.loss = 0.05;  // in each direction
  std::size_t buried = 0;
  for (int i = 0; i < 100; ++i) {
    run.run_round();
    for (auto& node : run.nodes()) {
      for (const Member& member : node.members.members())
        buried += member.status() == MemberStatus::dead ? 1 : 0;
    }
  }
  CHECK(buried == 0);
  run.loss = 0;
  CHECK(run.rounds_until([&] { return run.agreed() && run.digests_equal(); }, 60) <= 60);
}

TEST_CASE("while one node in twenty is replaced again and again, the others keep up") {
  VirtualMembership run = cluster(8, 120);
  REQUIRE(run.rounds_until([&] { return run.agreed(); }, 200) <= 200);
  std::size_t next = 0;
  for (int wave = 0; wave < 4; ++wave) {
    for (int i = 0; i < 6; ++i) {
      const std::size_t node = 3 + (next++ * 7) % 110;
      if (!run.nodes()[node].up) continue;
      if (i % 2 == 0) run.kill(node);
      if (i % 2 == 1) run.leave(node);
      run.start("fresh" + std::to_string(next), {"n0"});
    }
    for (int i = 0; i < 20; ++i) run.run_round();
  }
  CHECK(run.rounds_until([&] { return run.agreed(); }, 100) <= 100);
}

TEST_CASE("one that starts again under an earlier clock is known to all, and stays known") {
  VirtualMembership run = cluster(10, 60);
  for (int i = 0; i < 100; ++i) run.run_round();
  REQUIRE(run.agreed());
  for (const bool is_dead : {false, true}) {
    CAPTURE(is_dead);
    run.kill(7);
    if (is_dead) REQUIRE(run.rounds_until([&] { return run.agreed(); }, 100) <= 100);
    run.restart(7, is_dead ? 3 : 5);
    const int rounds = run.rounds_until([&] { return run.agreed() && run.digests_equal(); }, 200);
    MESSAGE("an earlier clock is known to all of 60 nodes in ", rounds, " rounds");
    CHECK(rounds <= 200);
    std::size_t buried = 0;
    for (int i = 0; i < 100; ++i) {
      run.run_round();
      buried += run.agreed() ? 0 : 1;
    }
    CHECK(buried == 0);
    CHECK(run.digests_equal());
  }
}

TEST_CASE("in a quiet cluster nothing changes and nothing but each node's own claim is said") {
  VirtualMembership run = cluster(9, 60);
  for (int i = 0; i < 600; ++i) run.run_round();  // each has reached each of the others
  const auto before = run.changes;
  run.largest = 0;
  for (int i = 0; i < 100; ++i) run.run_round();
  CHECK(run.changes == before);
  CHECK(run.largest == 1);
}

}  // namespace dpwa
