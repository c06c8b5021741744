#include "dpwa/core/lineage.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "dpwa/core/clock.h"
#include "dpwa/core/random.h"

using dpwa::adopts;
using dpwa::Progress;
using dpwa::Random;

namespace {

Progress at(std::uint64_t lineage, double clock) {
  Progress progress;
  progress.lineage = lineage;
  progress.clock = clock;
  return progress;
}

}  // namespace

TEST_CASE("a node without a lineage adopts any, and is adopted by nobody") {
  CHECK(adopts(at(0, 0), at(7, 0)));
  CHECK(adopts(at(0, 100), at(7, 1)));
  CHECK_FALSE(adopts(at(7, 1), at(0, 100)));
  CHECK_FALSE(adopts(at(0, 0), at(0, 100)));
}

TEST_CASE("nodes of one lineage never adopt each other") {
  CHECK_FALSE(adopts(at(7, 1), at(7, 100)));
  CHECK_FALSE(adopts(at(7, 100), at(7, 1)));
}

TEST_CASE("the less trained of two lineages yields") {
  CHECK(adopts(at(1, 10), at(2, 10.5)));
  CHECK_FALSE(adopts(at(2, 10.5), at(1, 10)));
}

TEST_CASE("at equal clocks the larger lineage yields") {
  CHECK(adopts(at(2, 10), at(1, 10)));
  CHECK_FALSE(adopts(at(1, 10), at(2, 10)));
}

TEST_CASE("a clock that is not finite is never adopted") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK_FALSE(adopts(at(1, 10), at(2, nan)));
  CHECK_FALSE(adopts(at(1, 10), at(2, infinity)));
  CHECK_FALSE(adopts(at(0, 0), at(2, nan)));
  CHECK(adopts(at(1, nan), at(2, 3)));
}

TEST_CASE("of any two different lineages exactly one yields") {
  Random random(1);
  for (int i = 0; i < 10000; ++i) {
    const Progress a = at(1 + random.below(3), static_cast<double>(random.below(3)));
    const Progress b = at(1 + random.below(3), static_cast<double>(random.below(3)));
    CHECK((adopts(a, b) != adopts(b, a)) == (a.lineage != b.lineage));
  }
}

TEST_CASE("a cluster that began split ends with one lineage") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    std::vector<Progress> nodes;
    for (std::size_t i = 0; i < 16; ++i) nodes.push_back(at(1 + i % 3, random.uniform(0, 5)));
    const auto differ = [&] {
      for (const Progress& node : nodes) {
        if (node.lineage != nodes[0].lineage) return true;
      }
      return false;
    };
    int steps = 0;
    for (; differ() && steps < 16 * 200; ++steps) {  // at most 200 steps of every node
      Progress& node = nodes[random.below(nodes.size())];
      node.clock = dpwa::clock_after_publish(node.clock);
      const Progress& peer = nodes[random.below(nodes.size())];
      if (adopts(node, peer)) {
        node.lineage = peer.lineage;
        node.clock = peer.clock;
      } else if (node.lineage == peer.lineage) {
        node.clock = dpwa::clock_after_lerp(node.clock, peer.clock, 0.5);
      }
    }
    CHECK_FALSE(differ());
  }
}
