#include "dpwa/core/readers.h"

#include <doctest/doctest.h>

#include <string>

namespace dpwa {
namespace {

using namespace std::chrono_literals;
constexpr TimePoint start = TimePoint() + std::chrono::hours(1);

}  // namespace

TEST_CASE("no more replies at once than allowed, and two to one peer") {
  Readers readers(3);
  readers.begin("w2");
  CHECK(readers.may_begin("w2", start));
  readers.begin("w2");
  CHECK_FALSE(readers.may_begin("w2", start));
  CHECK(readers.may_begin("w3", start));
  readers.begin("w3");
  CHECK_FALSE(readers.may_begin("w4", start));
  CHECK(readers.in_flight() == 3);
  readers.end("w2", 1s, true, start);
  CHECK(readers.may_begin("w2", start));
  CHECK(readers.may_begin("w4", start));
}

TEST_CASE("a peer that held a snapshot in vain waits three times as long, then twice that") {
  Readers readers(8);
  TimePoint now = start;
  for (const auto pause : {6s, 12s, 24s, 48s, 60s, 60s}) {
    REQUIRE(readers.may_begin("w2", now));
    readers.begin("w2");
    readers.end("w2", 2s, false, now);
    CHECK_FALSE(readers.may_begin("w2", now + pause - 1ms));
    now += pause;
    CHECK(readers.may_begin("w2", now));
    CHECK(readers.may_begin("w3", now));
  }
}

TEST_CASE("a whole reply makes a peer as good as any other again") {
  Readers readers(8);
  readers.begin("w2");
  readers.end("w2", 2s, false, start);
  readers.begin("w2");
  readers.end("w2", 1s, true, start + 6s);
  CHECK(readers.may_begin("w2", start + 6s));
  readers.begin("w2");
  readers.end("w2", 2s, false, start + 6s);
  CHECK(readers.may_begin("w2", start + 12s));
}

TEST_CASE("connections that break early cost next to nothing, however often") {
  Readers readers(8);
  TimePoint now = start;
  for (int i = 0; i < 20; ++i) {
    readers.begin("w2");
    readers.end("w2", 10ms, false, now);
    CHECK_FALSE(readers.may_begin("w2", now + 29ms));
    now += 30ms;
    REQUIRE(readers.may_begin("w2", now));
  }
}

TEST_CASE("a whole reply does not shorten the pause for another one held at the same time") {
  Readers readers(8);
  readers.begin("w2");
  readers.begin("w2");
  readers.end("w2", 2s, false, start);
  readers.end("w2", 2s, true, start);
  CHECK(readers.in_flight() == 0);
  CHECK_FALSE(readers.may_begin("w2", start + 5s));
  CHECK(readers.may_begin("w2", start + 6s));
}

TEST_CASE("peers that stall under ever new names are forgotten, the oldest pause first") {
  Readers readers(8);
  readers.begin("reads on");
  const auto stall_as = [&](const std::string& name, TimePoint now) {
    readers.begin(name);
    readers.end(name, 2s, false, now);
  };
  constexpr std::size_t names = 3 * Readers::max_remembered;
  TimePoint now = start;
  for (std::size_t i = 0; i < names; ++i) {
    now += 1us;
    stall_as("x" + std::to_string(i), now);
  }
  CHECK(readers.accounts() == Readers::max_remembered);
  CHECK(readers.may_begin("x0", now));
  CHECK_FALSE(readers.may_begin("x" + std::to_string(names - 1), now));
  CHECK(readers.in_flight() == 1);
  now += 6s + Readers::memory;
  stall_as("w3", now);
  CHECK(readers.accounts() == 2);
  readers.end("reads on", 1s, true, now);
  CHECK(readers.in_flight() == 0);
  CHECK(readers.accounts() == 1);
}

TEST_CASE("a peer that comes back soon after its pause is still known") {
  Readers readers(8);
  const auto stall_as = [&](const std::string& name, TimePoint now) {
    readers.begin(name);
    readers.end(name, 2s, false, now);
  };
  stall_as("w2", start);
  const TimePoint back = start + 6s + Readers::memory - 1ms;
  stall_as("w3", back);
  stall_as("w2", back);
  CHECK_FALSE(readers.may_begin("w2", back + 12s - 1ms));
  CHECK(readers.may_begin("w2", back + 12s));
}

}  // namespace dpwa
