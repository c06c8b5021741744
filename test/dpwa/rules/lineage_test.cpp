#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/rules/lineage.h"
#include "dpwa/rules/progress.h"

using namespace std::chrono_literals;
using dpwa::LineageReport;
using dpwa::Progress;
using dpwa::Random;
using dpwa::TakeoverLimit;
using dpwa::TimePoint;
using dpwa::yields;

namespace {

Progress at(std::uint64_t lineage, double clock) {
  Progress progress;
  progress.lineage = lineage;
  progress.clock = clock;
  return progress;
}

}  // namespace

TEST_CASE("a node that trains yields to the lineage of more nodes, whatever the clocks") {
  const Progress own = at(1, 1000);
  using Reports = std::vector<LineageReport>;
  CHECK(yields(own, at(2, 5), Reports{{2, 5}, {2, 4}}, true, true));
  CHECK_FALSE(yields(own, at(2, 1e9), Reports{{2, 1e9}, {1, 900}}, true, true));
  CHECK_FALSE(yields(own, at(2, 1e9), Reports{{2, 1e9}, {1, 900}, {3, 7}}, true, true));
}

TEST_CASE("at equal counts it yields to the higher clock of any node of a lineage") {
  using Reports = std::vector<LineageReport>;
  CHECK(yields(at(1, 10), at(2, 11), Reports{{2, 11}}, true, true));
  CHECK_FALSE(yields(at(1, 10), at(2, 9), Reports{{2, 9}}, true, true));
  CHECK(yields(at(1, 10), at(2, 9), Reports{{2, 9}, {2, 12}, {1, 11}}, true, true));
  CHECK_FALSE(yields(at(1, 10), at(2, 12), Reports{{2, 12}, {2, 9}, {1, 13}}, true, true));
  CHECK(yields(at(2, 10), at(1, 10), Reports{{1, 10}}, true, true));
  CHECK_FALSE(yields(at(1, 10), at(2, 10), Reports{{2, 10}}, true, true));
}

TEST_CASE("a node that has not been heard yet counts for the own lineage, for a while") {
  using Reports = std::vector<LineageReport>;
  CHECK_FALSE(yields(at(1, 10), at(2, 99), Reports{{2, 99}, {0, 0}}, true, false));
  CHECK(yields(at(1, 10), at(2, 99), Reports{{2, 99}, {0, 0}}, true, true));
}

TEST_CASE("a node that is not of the file does not count itself") {
  using Reports = std::vector<LineageReport>;
  CHECK(yields(at(1, 10), at(2, 5), Reports{{2, 5}}, false, true));
  CHECK_FALSE(yields(at(1, 10), at(2, 5), Reports{{2, 5}}, true, true));
}

TEST_CASE("neither the own lineage, nor none, nor a clock that is not finite is yielded to") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<LineageReport> many(5, {2, 50});
  CHECK_FALSE(yields(at(2, 10), at(2, 50), many, true, true));
  CHECK_FALSE(yields(at(1, 10), at(0, 50), many, true, true));
  CHECK_FALSE(yields(at(1, 10), at(2, nan), many, true, true));
  CHECK(yields(at(0, 0), at(2, 50), many, true, true));
}

TEST_CASE("weights of one peer are taken over once a minute, then ever more rarely") {
  TakeoverLimit limit;
  const TimePoint from{};
  CHECK(limit.allows("w2", from));
  limit.took("w2", from);
  CHECK_FALSE(limit.allows("w2", from + 59s));
  CHECK(limit.allows("w3", from));
  CHECK(limit.allows("w2", from + 60s));
  limit.took("w2", from + 60s);
  CHECK_FALSE(limit.allows("w2", from + 179s));
  CHECK(limit.allows("w2", from + 180s));
  int taken = 0;
  for (TimePoint now = from; now < from + 24h; now += 1s) {
    if (!limit.allows("w4", now)) continue;
    limit.took("w4", now);
    ++taken;
  }
  CHECK(taken == 29);  // 1, 2, 4, ... 32 min, then every hour
}

TEST_CASE("two nodes that would take over from each other at the same time never both do") {
  Random random(3);
  const TimePoint now{};
  for (int i = 0; i < 1000; ++i) {
    const Progress a = at(1 + random.below(1000), 7);
    const Progress b = at(2000 + random.below(1000), 7);
    CHECK(TakeoverLimit::may_cross(a, b, now, now + 1s) !=
          TakeoverLimit::may_cross(b, a, now, now + 1s));
  }
  CHECK(TakeoverLimit::may_cross(at(1, 7), at(2, 7), now, now + 2min));
}

TEST_CASE("without a list of nodes the lineage that was trained for longer is yielded to") {
  using dpwa::yields_by_age;
  using Reports = std::vector<LineageReport>;
  CHECK(yields_by_age(at(3, 100), at(4, 200), {}));
  CHECK_FALSE(yields_by_age(at(4, 200), at(3, 100), {}));
  // However many nodes have another one.
  CHECK(yields_by_age(at(3, 100), at(4, 200), Reports{{3, 90}, {3, 95}}));
  CHECK_FALSE(yields_by_age(at(3, 100), at(4, 200), Reports{{3, 190}}));
  CHECK_FALSE(yields_by_age(at(3, 1), at(3, 1000), {}));
  CHECK_FALSE(yields_by_age(at(3, 1), at(0, 1000), {}));
  CHECK(yields_by_age(at(0, 0), at(4, 1), {}));
  CHECK_FALSE(yields_by_age(at(4, 1), at(3, std::numeric_limits<double>::quiet_NaN()), {}));
}

TEST_CASE("of lineages that were trained for about as long the smaller one is yielded to") {
  using dpwa::is_elder;
  for (const double clock : {1000.0, 1090.0, 1110.0}) {
    CHECK(is_elder({3, 1000}, {4, clock}));
    CHECK_FALSE(is_elder({4, clock}, {3, 1000}));
  }
  CHECK(is_elder({4, 1120}, {3, 1000}));
  CHECK_FALSE(is_elder({3, 1000}, {4, 1120}));
  CHECK(is_elder({3, 0}, {4, 10}));
  CHECK(is_elder({4, 11}, {3, 0}));
}
