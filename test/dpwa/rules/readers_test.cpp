#include "dpwa/rules/readers.h"

#include <doctest/doctest.h>

#include <string>

namespace dpwa {
namespace {

using namespace std::chrono_literals;
constexpr TimePoint start = TimePoint() + std::chrono::hours(1);

// Nodes that call from where the file has them.
Caller node(const std::string& name) {
  return Caller::known(name + " at " + name, name);
}

Caller stranger(const std::string& name, const std::string& network = "10.0.0.9") {
  return Caller::stranger(name + " at " + network, network);
}

}  // namespace

TEST_CASE("no more replies at once than allowed, and two to one peer") {
  Readers readers(3);
  readers.begin(node("w2"));
  CHECK(readers.may_begin(node("w2"), start));
  readers.begin(node("w2"));
  CHECK_FALSE(readers.may_begin(node("w2"), start));
  CHECK(readers.may_begin(node("w3"), start));
  readers.begin(node("w3"));
  CHECK_FALSE(readers.may_begin(node("w4"), start));
  CHECK(readers.in_flight() == 3);
  readers.end(node("w2"), 1s, true, start);
  CHECK(readers.may_begin(node("w2"), start));
  CHECK(readers.may_begin(node("w4"), start));
}

TEST_CASE("a peer that held a snapshot in vain waits three times as long, then twice that") {
  Readers readers(8);
  TimePoint now = start;
  for (const auto pause : {6s, 12s, 24s, 48s, 60s, 60s}) {
    REQUIRE(readers.may_begin(node("w2"), now));
    readers.begin(node("w2"));
    readers.end(node("w2"), 2s, false, now);
    CHECK_FALSE(readers.may_begin(node("w2"), now + pause - 1ms));
    now += pause;
    CHECK(readers.may_begin(node("w2"), now));
    CHECK(readers.may_begin(node("w3"), now));
  }
}

TEST_CASE("a whole reply makes a peer as good as any other again") {
  Readers readers(8);
  readers.begin(node("w2"));
  readers.end(node("w2"), 2s, false, start);
  readers.begin(node("w2"));
  readers.end(node("w2"), 1s, true, start + 6s);
  CHECK(readers.may_begin(node("w2"), start + 6s));
  readers.begin(node("w2"));
  readers.end(node("w2"), 2s, false, start + 6s);
  CHECK(readers.may_begin(node("w2"), start + 12s));
}

TEST_CASE("connections that break early cost next to nothing, however often") {
  Readers readers(8);
  TimePoint now = start;
  for (int i = 0; i < 20; ++i) {
    readers.begin(node("w2"));
    readers.end(node("w2"), 10ms, false, now);
    CHECK_FALSE(readers.may_begin(node("w2"), now + 29ms));
    now += 30ms;
    REQUIRE(readers.may_begin(node("w2"), now));
  }
}

TEST_CASE("a whole reply does not shorten the pause for another one held at the same time") {
  Readers readers(8);
  readers.begin(node("w2"));
  readers.begin(node("w2"));
  readers.end(node("w2"), 2s, false, start);
  readers.end(node("w2"), 2s, true, start);
  CHECK(readers.in_flight() == 0);
  CHECK_FALSE(readers.may_begin(node("w2"), start + 5s));
  CHECK(readers.may_begin(node("w2"), start + 6s));
}

TEST_CASE("peers that stall under ever new names are forgotten, the oldest pause first") {
  Readers readers(8);
  readers.begin(node("reads on"));
  const auto stall_as = [&](const std::string& name, TimePoint now) {
    readers.begin(node(name));
    readers.end(node(name), 2s, false, now);
  };
  constexpr std::size_t names = 3 * Readers::max_remembered;
  TimePoint now = start;
  for (std::size_t i = 0; i < names; ++i) {
    now += 1us;
    stall_as("x" + std::to_string(i), now);
  }
  CHECK(readers.accounts() == Readers::max_remembered);
  CHECK(readers.may_begin(node("x0"), now));
  CHECK_FALSE(readers.may_begin(node("x" + std::to_string(names - 1)), now));
  CHECK(readers.in_flight() == 1);
  now += 6s + Readers::memory;
  stall_as("w3", now);
  CHECK(readers.accounts() == 2);
  readers.end(node("reads on"), 1s, true, now);
  CHECK(readers.in_flight() == 0);
  CHECK(readers.accounts() == 1);
}

TEST_CASE("a peer that comes back soon after its pause is still known") {
  Readers readers(8);
  const auto stall_as = [&](const std::string& name, TimePoint now) {
    readers.begin(node(name));
    readers.end(node(name), 2s, false, now);
  };
  stall_as("w2", start);
  const TimePoint back = start + 6s + Readers::memory - 1ms;
  stall_as("w3", back);
  stall_as("w2", back);
  CHECK_FALSE(readers.may_begin(node("w2"), back + 12s - 1ms));
  CHECK(readers.may_begin(node("w2"), back + 12s));
}

TEST_CASE("a caller that uses a node's name from another address costs that node nothing") {
  Readers readers(8);
  const Caller honest = node("w2");
  const Caller attacker = stranger("w2");
  readers.begin(attacker);
  readers.begin(attacker);
  CHECK_FALSE(readers.may_begin(attacker, start));
  CHECK(readers.may_begin(honest, start));
  for (int i = 0; i < 2; ++i) readers.end(attacker, 2s, false, start);
  CHECK_FALSE(readers.may_begin(attacker, start));
  CHECK(readers.may_begin(honest, start));
  readers.begin(honest);
  readers.end(honest, 1s, true, start);
  CHECK_FALSE(readers.may_begin(attacker, start));  // the honest reply does not clear it
}

TEST_CASE("strangers of one network answer together, under whatever names") {
  Readers readers(8);
  readers.begin(stranger("a"));
  readers.end(stranger("a"), 2s, false, start);
  for (const std::string name : {"a", "b", "c"})
    CHECK_FALSE(readers.may_begin(stranger(name), start + 6s - 1ms));
  CHECK(readers.may_begin(stranger("b"), start + 6s));
  CHECK(readers.may_begin(stranger("a", "10.0.0.8"), start));
  readers.begin(stranger("b"));
  readers.end(stranger("b"), 2s, false, start + 8s);
  CHECK_FALSE(readers.may_begin(stranger("c"), start + 20s - 1ms));
  CHECK(readers.may_begin(stranger("c"), start + 20s));
  // A whole reply takes back one stall of two.
  readers.begin(stranger("c"));
  readers.end(stranger("c"), 1s, true, start + 20s);
  readers.begin(stranger("c"));
  readers.end(stranger("c"), 2s, false, start + 22s);
  CHECK(readers.may_begin(stranger("c"), start + 34s));
}

TEST_CASE("stalls at the same time are one: a network that failed once waits as for one") {
  Readers readers(8);
  for (const std::string name : {"a", "b", "c", "d"}) readers.begin(stranger(name));
  for (const std::string name : {"a", "b", "c", "d"}) readers.end(stranger(name), 2s, false, start);
  CHECK_FALSE(readers.may_begin(stranger("a"), start + 6s - 1ms));
  CHECK(readers.may_begin(stranger("a"), start + 6s));
}

TEST_CASE("one network gets three quarters of the replies at most") {
  Readers readers(8);
  for (int i = 0; i < 6; ++i) {
    REQUIRE(readers.may_begin(stranger("x" + std::to_string(i)), start));
    readers.begin(stranger("x" + std::to_string(i)));
  }
  CHECK_FALSE(readers.may_begin(stranger("x6"), start));
  CHECK(readers.may_begin(node("w2"), start));
  readers.end(stranger("x0"), 1s, true, start);
  CHECK(readers.may_begin(stranger("x6"), start));
}

}  // namespace dpwa
