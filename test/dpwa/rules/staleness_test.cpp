#include "dpwa/rules/staleness.h"

#include <doctest/doctest.h>

#include <limits>

#include "dpwa/rules/progress.h"

using namespace std::chrono_literals;
using dpwa::StalenessGuard;
using dpwa::StalenessOptions;
using dpwa::TimePoint;

namespace {
const TimePoint start{};
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
}  // namespace

TEST_CASE("a peer may lag up to the staleness bound and no further") {
  StalenessGuard guard(StalenessOptions{5, 0ns});
  CHECK(guard.accept(0, 95, 100, start));
  CHECK_FALSE(guard.accept(0, 94.5, 100, start));
  CHECK(guard.accept(0, 500, 100, start));  // ahead is never stale
}

TEST_CASE("a staleness bound of zero sets no bound") {
  StalenessGuard guard(StalenessOptions{0, 0ns});
  CHECK(guard.accept(0, 0, 1e9, start));
}

TEST_CASE("a clock that stands still for max_frozen is refused while ours moves") {
  StalenessGuard guard(StalenessOptions{0, 10s});
  CHECK(guard.accept(3, 50, 100, start));
  CHECK(guard.accept(3, 50, 101, start + 9999ms));
  CHECK_FALSE(guard.accept(3, 50, 102, start + 10s));
  CHECK_FALSE(guard.accept(3, 50, 103, start + 60s));
}

TEST_CASE("a frozen peer is accepted again as soon as its clock moves, up or down") {
  for (const double moved : {51.0, 1.0}) {
    CAPTURE(moved);
    StalenessGuard guard(StalenessOptions{0, 10s});
    CHECK(guard.accept(0, 50, 100, start));
    CHECK_FALSE(guard.accept(0, 50, 200, start + 10s));
    CHECK(guard.accept(0, moved, 201, start + 11s));
    CHECK(guard.accept(0, moved, 202, start + 20s));
    CHECK_FALSE(guard.accept(0, moved, 203, start + 21s));
  }
}

TEST_CASE("a clock too large to count steps is not taken for a frozen one") {
  for (const double clock : {0x1p53, 1e300}) {
    StalenessGuard guard(StalenessOptions{0, 10s});
    CHECK(guard.accept(0, clock, clock, start));
    CHECK(guard.accept(0, clock, clock / 2, start + 60s));
  }
  StalenessGuard guard(StalenessOptions{0, 10s});
  CHECK(guard.accept(0, 0x1p53 - 1, 1, start));
  CHECK_FALSE(guard.accept(0, 0x1p53 - 1, 2, start + 60s));
}

TEST_CASE("after a pause of the whole cluster no peer counts as frozen") {
  StalenessGuard guard(StalenessOptions{0, 10s});
  CHECK(guard.accept(0, 50, 100, start));
  CHECK(guard.accept(0, 50, 100, start + 60s));
}

TEST_CASE("a frozen peer is refused although blending it holds our clock down") {
  StalenessGuard guard(StalenessOptions{0, 10s});
  double own = 100;
  TimePoint now = start;
  int accepted = 0;
  while (guard.accept(0, 50, own, now) && accepted < 10000) {
    ++accepted;
    own = dpwa::clock_after_publish(dpwa::clock_after_lerp(own, 50, 0.5));
    now += 100ms;
  }
  CHECK(own < 100);  // a rule that waits for it to rise would blend for ever
  CHECK(accepted == 100);
}

TEST_CASE("a max_frozen of zero sets no bound") {
  StalenessGuard guard(StalenessOptions{0, 0ns});
  CHECK(guard.accept(0, 50, 100, start));
  CHECK(guard.accept(0, 50, 200, start + 1000h));
}

TEST_CASE("peers are judged apart") {
  StalenessGuard guard(StalenessOptions{0, 10s});
  CHECK(guard.accept(0, 50, 100, start));
  CHECK(guard.accept(1, 50, 105, start + 5s));
  CHECK_FALSE(guard.accept(0, 50, 110, start + 10s));
  CHECK(guard.accept(1, 50, 110, start + 10s));
}

TEST_CASE("clocks that are not finite are refused and leave no trace") {
  StalenessGuard guard(StalenessOptions{0, 10s});
  CHECK_FALSE(guard.accept(0, not_a_number, 100, start));
  CHECK_FALSE(guard.accept(0, infinity, 100, start));
  CHECK_FALSE(guard.accept(0, -infinity, 100, start));
  CHECK_FALSE(guard.accept(0, 50, not_a_number, start));
  CHECK(guard.accept(0, 50, 100, start + 20s));
  CHECK_FALSE(guard.accept(0, not_a_number, 100, start + 25s));
  CHECK_FALSE(guard.accept(0, 50, 101, start + 30s));  // still frozen since +20 s
}

TEST_CASE("a publish advances the clock by one") {
  CHECK(dpwa::clock_after_publish(2.5) == 3.5);
}

TEST_CASE("a blend averages the clocks as it averages the parameters") {
  CHECK(dpwa::clock_after_lerp(10, 20, 0.0) == 10);
  CHECK(dpwa::clock_after_lerp(10, 20, 0.25) == 12.5);
  CHECK(dpwa::clock_after_lerp(10, 20, 1.0) == 20);
}

TEST_CASE("no clock of a peer makes the own one infinite or negative") {
  constexpr double most = std::numeric_limits<double>::max();
  CHECK(dpwa::clock_after_delta(most, most, 0, 1.0) == most);
  CHECK(dpwa::clock_after_delta(1, 0, 10, 0.5) == 0);
  CHECK(dpwa::clock_after_lerp(10, 0, 2.0) == 0);
}
