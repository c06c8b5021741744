#include "dpwa/rules/trainer_watches.h"

#include <doctest/doctest.h>

namespace dpwa {

using namespace std::chrono_literals;

TEST_CASE("being alone is said after ten seconds and then once a minute") {
  AloneWatch watch;
  const TimePoint from{};
  int warnings = 0;
  for (auto now = from; now <= from + 130s; now += 100ms) {
    const auto time = watch.observe(true, now);
    if (!time) continue;
    ++warnings;
    CHECK(*time == now - from);
    CHECK(now - from == 10s + (warnings - 1) * 60s);
  }
  CHECK(warnings == 3);
}

TEST_CASE("a peer that answers ends it") {
  AloneWatch watch;
  const TimePoint from{};
  CHECK_FALSE(watch.observe(true, from));
  CHECK(watch.since() == from);
  CHECK_FALSE(watch.observe(false, from + 9s));
  CHECK_FALSE(watch.since());
  CHECK_FALSE(watch.observe(true, from + 11s));
  CHECK_FALSE(watch.observe(true, from + 20s));
  CHECK(watch.observe(true, from + 21s) == 10s);
}

}  // namespace dpwa
