#include "dpwa/rules/quarantine.h"

#include <doctest/doctest.h>

using namespace std::chrono_literals;
using dpwa::Duration;
using dpwa::FirewallOptions;
using dpwa::Quarantine;
using dpwa::TimePoint;

namespace {

constexpr TimePoint start = TimePoint() + 1h;

FirewallOptions options() {
  FirewallOptions options;
  options.quarantine = 2s;
  options.quarantine_max = 10s;
  return options;
}

// The quarantine that begins with an offence at `now`; zero for none.
Duration offend(Quarantine& quarantine, TimePoint now, bool deliberate = true) {
  const auto until = quarantine.offence(0, deliberate, now);
  return until ? *until - now : Duration::zero();
}

void offend_until_held(Quarantine& quarantine, TimePoint now) {
  offend(quarantine, now);
  offend(quarantine, now);
  REQUIRE(offend(quarantine, now) == 2s);
}

}  // namespace

TEST_CASE("the third offence in a row leads into quarantine, of that peer alone") {
  Quarantine quarantine(options());
  CHECK(offend(quarantine, start) == 0s);
  CHECK(offend(quarantine, start) == 0s);
  CHECK(offend(quarantine, start) == 2s);
  CHECK(quarantine.at(0).until == start + 2s);
  CHECK(quarantine.at(0).offences == 3);
  CHECK(quarantine.at(1).until < start);
}

TEST_CASE("something sound between begins the count afresh") {
  Quarantine quarantine(options());
  for (int i = 0; i < 10; ++i) {
    CHECK(offend(quarantine, start) == 0s);
    CHECK(offend(quarantine, start) == 0s);
    quarantine.sound(0);
  }
}

TEST_CASE(
    "after a quarantine one offence leads back at once, for twice as long up to the maximum") {
  Quarantine quarantine(options());
  TimePoint now = start;
  offend_until_held(quarantine, now);
  for (const Duration expected : {4s, 8s, 10s, 10s}) {
    now = quarantine.at(0).until;
    CHECK(offend(quarantine, now) == expected);
  }
}

TEST_CASE("offences within a quarantine do not make it longer") {
  Quarantine quarantine(options());
  offend_until_held(quarantine, start);
  for (int i = 0; i < 10; ++i) CHECK(offend(quarantine, start + 1s) == 0s);
  CHECK(quarantine.at(0).until == start + 2s);
  CHECK(offend(quarantine, start + 2s) == 4s);
}

TEST_CASE("a peer that behaves for twice its quarantine after it begins with the shortest again") {
  Quarantine quarantine(options());
  offend_until_held(quarantine, start);
  quarantine.sound(0);
  SUBCASE("long enough") {
    offend_until_held(quarantine, start + 2s + 4s);
  }
  SUBCASE("not long enough") {
    const TimePoint now = start + 2s + 3900ms;
    offend(quarantine, now);
    offend(quarantine, now);
    CHECK(offend(quarantine, now) == 4s);
  }
}

TEST_CASE("bytes that may have been damaged on the way never make the next quarantine longer") {
  Quarantine quarantine(options());
  offend(quarantine, start, false);
  offend(quarantine, start, false);
  TimePoint now = start;
  for (int i = 0; i < 5; ++i) {
    CHECK(offend(quarantine, now, false) == 2s);
    now = quarantine.at(0).until;
  }
}

TEST_CASE("the longest quarantine that can be configured does not overflow") {
  FirewallOptions huge = options();
  huge.quarantine = 24h;
  huge.quarantine_max = 24h;
  Quarantine quarantine(huge);
  TimePoint now = start;
  for (int i = 0; i < 100; ++i) {
    offend(quarantine, now);
    now = std::max(now, quarantine.at(0).until);
  }
  CHECK(quarantine.at(0).until - start == 98 * Duration(24h));
}

TEST_CASE("a quarantine lasts no less than what is asked for, and twice as long the next time") {
  Quarantine quarantine(options());
  const auto offend_for = [&](TimePoint now, Duration shortest) {
    const auto until = quarantine.offence(0, true, now, shortest);
    return until ? *until - now : Duration::zero();
  };
  CHECK(offend_for(start, 3s) == 0s);
  CHECK(offend_for(start, 3s) == 0s);
  CHECK(offend_for(start, 3s) == 3s);
  CHECK(offend_for(start + 3s, 3s) == 6s);
  CHECK(offend_for(start + 9s, 3s) == 10s);   // the longest
  CHECK(offend_for(start + 19s, 1s) == 10s);  // the options' own: 2 s, doubled thrice and cut
  CHECK(offend_for(start + 29s, 60s) == 60s);
}
