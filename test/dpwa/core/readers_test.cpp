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

TEST_CASE("a connection that breaks early costs next to nothing") {
  Readers readers(8);
  readers.begin("w2");
  readers.end("w2", 1ms, false, start);
  CHECK(readers.may_begin("w2", start + 3ms));
}

TEST_CASE("a whole reply does not shorten the pause for another one held at the same time") {
  Readers readers(8);
  readers.begin("w2");
  readers.begin("w2");
  readers.end("w2", 2s, false, start);
  readers.end("w2", 2s, true, start);
  // Its row has ended, so the account is closed: the next offence begins anew.
  CHECK(readers.in_flight() == 0);
  readers.begin("w2");
  readers.end("w2", 2s, false, start);
  CHECK_FALSE(readers.may_begin("w2", start + 5s));
}

}  // namespace dpwa
