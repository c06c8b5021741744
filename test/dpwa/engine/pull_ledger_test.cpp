// How rounds of pulls use the pair ledger. The accounts themselves: rules/pair_ledger_test.cpp;
// what they do to a cluster: pace_test.cpp.

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "dpwa/engine/pull_engine.h"
#include "test/dpwa/engine/pull_driver.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::measuring;
using test::of_peer;
using test::progress;
using Driver = test::PullDriver;

}  // namespace

TEST_CASE("a peer whose snapshot is not fresh costs nothing: another one is asked at once") {
  PullEngineOptions chosen = measuring();
  chosen.ledger_factor = 0.5;
  Driver driver({"w1", "w2"}, chosen);
  driver.engine.begin({});
  const auto first = driver.ask();
  REQUIRE(first);
  driver.fails(PeerFailure::not_fresh, false, 1);
  const auto second = driver.ask();
  REQUIRE(second);
  CHECK(second->peer != first->peer);
  driver.fails(PeerFailure::not_fresh, false, 1);
  CHECK_FALSE(driver.ask());
  CHECK(driver.arrival.outcome == Outcome::skipped);
  const PeerRecord& record = driver.engine.table().at(first->peer);
  CHECK(record.pulls_failed == 0);
  CHECK(record.retry_at <= driver.now);
  CHECK(driver.round(of_peer(first->peer), progress(1)) == Outcome::mixed);
}

TEST_CASE("after 50 rounds without a fresh snapshot one of any age is asked for, once") {
  PullEngineOptions chosen = measuring();
  chosen.ledger_factor = 0.5;
  Driver driver({"w1"}, chosen);
  const auto ask = [&driver] {
    driver.engine.begin({});
    const auto asked = driver.ask();
    REQUIRE(asked);
    return *asked;
  };
  for (std::uint64_t version = 1; version <= 2; ++version) {
    for (int round = 0; round < 50; ++round) {
      CHECK(ask().taken);
      driver.fails(PeerFailure::not_fresh, false, 1);
      CHECK_FALSE(driver.ask());
    }
    CHECK_FALSE(ask().taken);
    driver.sends(progress(version));
    CHECK_FALSE(driver.ask());
    CHECK(driver.arrival.outcome == Outcome::mixed);
  }
  CHECK(ask().taken);
}

TEST_CASE("a far snapshot counts as what is blended of it, and as more when it is refused") {
  for (const auto policy : {DistancePolicy::warn, DistancePolicy::clip, DistancePolicy::refuse}) {
    CAPTURE(static_cast<int>(policy));
    constexpr double factor = 0.5;
    PullEngineOptions chosen = measuring(policy);
    chosen.ledger_factor = factor;
    chosen.block_shares = {0.25, 0.75};
    Driver driver({"w1"}, chosen);
    driver.keeps_ledger = true;
    const auto pull = [&driver](std::uint64_t version, double distance) {
      RoundSpec spec;
      spec.block = 1;
      const std::uint16_t before = driver.engine.ledger()->stated_to(0);
      driver.engine.stated("w1", 1, before);  // the peer has taken as much
      driver.round(spec, progress(version), distance);
      return (driver.engine.ledger()->stated_to(0) - before) / 1024.0;
    };
    for (std::uint64_t version = 1; version <= 40; ++version) {
      const double taken = pull(version, 1);
      if (version > 1) CHECK(taken == doctest::Approx(factor * 0.75));
    }
    const bool refused = policy == DistancePolicy::refuse;
    const double taken = pull(41, 50);
    const double scale = driver.arrival.factor_scale;
    CHECK(taken == doctest::Approx(refused ? 12 * factor : scale * factor * 0.75).epsilon(0.05));
    if (policy == DistancePolicy::warn) CHECK(scale == 1);
    if (policy == DistancePolicy::clip) CHECK(driver.arrival.factor_scale < 0.5);
    CHECK(driver.arrival.refused == (refused ? 1 : 0));
  }
}

TEST_CASE("a snapshot that is refused because it is stale counts as taken") {
  PullEngineOptions chosen = measuring();
  chosen.ledger_factor = 0.5;
  chosen.staleness.max_staleness = 10;
  Driver driver({"w1"}, chosen);
  driver.keeps_ledger = true;
  driver.own.clock = 20;
  CHECK(driver.round({}, progress(1, 9)) == Outcome::stale);
  CHECK(driver.engine.ledger()->stated_to(0) == 512);
  driver.keeps_ledger = false;
  driver.now += 1min;
  CHECK(driver.round(of_peer(0), progress(2, 9)) == Outcome::stale);
  CHECK(driver.engine.ledger()->stated_to(0) == 512);
}

TEST_CASE("a snapshot that is not finite is not taken, and its node is granted pulls") {
  PullEngineOptions chosen = measuring();
  chosen.ledger_factor = 0.5;
  Driver driver({"w1"}, chosen);
  driver.keeps_ledger = true;
  CHECK(driver.round({}, progress(1), std::numeric_limits<double>::infinity()) ==
        Outcome::rejected);
  CHECK(driver.engine.ledger()->stated_to(0) == 12 * 512);
  CHECK(driver.engine.ledger()->balance(0) == 0);
}

TEST_CASE("a round among many ends when 32 peers were passed over in it") {
  constexpr std::size_t peers = 200;
  PullEngineOptions chosen = measuring();
  chosen.ledger_factor = 0.5;
  Driver driver(test::peer_names(0, peers + 1), chosen);
  driver.keeps_ledger = true;
  std::uint16_t taken_by_first = 0;
  std::uint64_t version = 0;
  // The first peer takes more than it gives. All others only give, until they are passed over.
  const auto round = [&] {
    taken_by_first = static_cast<std::uint16_t>(taken_by_first + 6 * 512);
    driver.engine.stated("w1", 1, taken_by_first);
    driver.now += 1min;
    return driver.round({}, progress(++version)) == Outcome::mixed;
  };
  for (std::size_t i = 0; i < 30 * peers; ++i) round();
  int found = 0;
  constexpr int rounds = 1000;
  for (int i = 0; i < rounds; ++i) found += round() ? 1 : 0;
  // 32 of 200 peers are drawn in a round, and one of the 200 is asked.
  CHECK(found > rounds * 0.10);
  CHECK(found < rounds * 0.24);
}

}  // namespace dpwa
