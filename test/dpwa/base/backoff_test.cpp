#include "dpwa/base/backoff.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <limits>

using namespace std::chrono_literals;
using dpwa::Backoff;
using dpwa::Duration;
using dpwa::Random;

TEST_CASE("without jitter the delay doubles with every failure up to the longest") {
  Random random(1);
  const Backoff backoff{100ms, 5s, 0};
  CHECK(backoff.delay(1, random) == 100ms);
  CHECK(backoff.delay(2, random) == 200ms);
  CHECK(backoff.delay(3, random) == 400ms);
  CHECK(backoff.delay(6, random) == 3200ms);
  CHECK(backoff.delay(7, random) == 5s);
  CHECK(backoff.delay(8, random) == 5s);
}

TEST_CASE("no number of failures overflows the delay") {
  Random random(1);
  CHECK(Backoff{100ms, 5s, 0}.delay(std::numeric_limits<unsigned>::max(), random) == 5s);
  // Half of all that a Duration holds, so that doubling it once more would overflow.
  const Duration huge = Duration::max() / 2;
  CHECK(Backoff{1ns, huge, 0}.delay(std::numeric_limits<unsigned>::max(), random) > huge / 2);
}

TEST_CASE("a delay of zero stays zero") {
  Random random(1);
  CHECK(Backoff{0ns, 5s, 0.5}.delay(std::numeric_limits<unsigned>::max(), random) == 0ns);
}

TEST_CASE("an initial delay above the longest is cut to it") {
  Random random(1);
  CHECK(Backoff{10s, 5s, 0}.delay(1, random) == 5s);
}

TEST_CASE("jitter spreads the delay around the nominal one and stays in its bounds") {
  Random random(1);
  const Backoff backoff{100ms, 5s, 0.5};
  Duration shortest = 1h, longest = 0ns;
  for (int i = 0; i < 5000; ++i) {
    const Duration delay = backoff.delay(2, random);
    shortest = std::min(shortest, delay);
    longest = std::max(longest, delay);
  }
  CHECK(shortest >= 100ms);
  CHECK(shortest < 102ms);
  CHECK(longest <= 300ms);
  CHECK(longest > 298ms);
}

TEST_CASE("a jitter above one never makes a delay negative") {
  Random random(1);
  const Backoff backoff{100ms, 5s, 3};
  for (int i = 0; i < 1000; ++i) CHECK(backoff.delay(1, random) >= 0ns);
}
