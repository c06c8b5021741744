#include "dpwa/core/readers.h"

#include <doctest/doctest.h>

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

}  // namespace dpwa
