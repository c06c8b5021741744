#include "dpwa/engine/pull_engine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "test/dpwa/engine/pull_driver.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::measuring;
using test::of_peer;
using test::progress;
using Driver = test::PullDriver;

}  // namespace

TEST_CASE("a round waits for its delay once, and its deadline begins after it") {
  Driver driver;
  RoundSpec spec;
  spec.delay = 30ms;
  spec.timeout = 200ms;
  driver.engine.begin(spec);
  const auto action = driver.next();
  REQUIRE(std::holds_alternative<PullEngine::Wait>(action));
  CHECK(std::get<PullEngine::Wait>(action).time == 30ms);
  driver.now += 30ms;
  const auto ask = driver.ask();
  REQUIRE(ask);
  CHECK(ask->left == 200ms);
  driver.now += 20ms;
  driver.sends(progress(1));
  CHECK_FALSE(driver.ask());
  CHECK(driver.arrival.outcome == Outcome::mixed);
  CHECK(driver.arrival.peer_name == "w1");
  CHECK(driver.arrival.bytes == 64);
  CHECK(driver.arrival.took == 20ms);
}

TEST_CASE("after a failure the round goes on with another peer, until the deadline") {
  Driver driver({"w1", "w2", "w3"});
  driver.engine.begin({});
  std::set<PeerId> asked;
  while (const auto ask = driver.ask()) {
    CHECK(asked.insert(ask->peer).second);
    driver.fails(PeerFailure::unreachable);
  }
  CHECK(asked.size() == 3);
  CHECK(driver.arrival.outcome == Outcome::unreachable);
  CHECK(driver.arrival.alone);

  driver.now += 1min;
  driver.engine.begin({});
  REQUIRE(driver.ask());
  driver.now += 500ms;
  const auto settled = driver.fails(PeerFailure::unreachable, /*late=*/true);
  CHECK(settled.failure == PeerFailure::timed_out);
  CHECK(settled.silent);
  CHECK_FALSE(driver.ask());
  CHECK(driver.arrival.outcome == Outcome::timed_out);
}

TEST_CASE("a peer is silent when nothing of it arrived, not when its answer was cut short") {
  for (const std::uint64_t bytes : {0U, 64U}) {
    CAPTURE(bytes);
    Driver driver;
    driver.engine.begin({});
    REQUIRE(driver.ask());
    CHECK(driver.fails(PeerFailure::timed_out, false, 0, bytes).silent == (bytes == 0));
  }
}

TEST_CASE("a stopped engine asks nobody, in the round under way and in later ones") {
  Driver driver({"w1", "w2"});
  driver.engine.begin({});
  REQUIRE(driver.ask());
  driver.engine.stop();
  driver.fails(PeerFailure::unreachable);
  CHECK_FALSE(driver.ask());
  CHECK(driver.arrival.outcome == Outcome::unreachable);
  RoundSpec delayed;
  delayed.delay = 1s;
  driver.engine.begin(delayed);
  CHECK_FALSE(driver.ask());
  CHECK(driver.arrival.outcome == Outcome::skipped);
}

TEST_CASE(
    "a version that was taken is stated to the peer, and breaks the protocol when sent again") {
  Driver driver;
  CHECK(driver.round(of_peer(0), progress(7)) == Outcome::mixed);
  driver.engine.begin(of_peer(0));
  const auto ask = driver.ask();
  REQUIRE(ask);
  CHECK(ask->known_incarnation == 1);
  CHECK(ask->known_version == 7);
  const auto settled = driver.sends(progress(7));
  CHECK(settled.failure == PeerFailure::protocol);
  CHECK(settled.broke_protocol);
  CHECK_FALSE(driver.ask());
  CHECK(driver.arrival.outcome == Outcome::rejected);
  CHECK(driver.round(of_peer(0), progress(6)) == Outcome::rejected);
  CHECK(driver.round(of_peer(0), progress(8)) == Outcome::mixed);
  CHECK(driver.engine.table().at(0).pulls_ok == 2);
  CHECK(driver.engine.table().at(0).last_failure == std::nullopt);
}

TEST_CASE("versions sent again and again cost the peer its score, whatever it does") {
  Driver driver;
  driver.round(of_peer(0), progress(7));
  for (int i = 0; i < 3; ++i) CHECK(driver.round(of_peer(0), progress(7)) == Outcome::rejected);
  CHECK(driver.engine.table().at(0).last_failure == PeerFailure::protocol);
  CHECK(driver.engine.table().at(0).pulls_ok == 1);
  driver.engine.called("w1", 2);
  CHECK(driver.engine.table().at(0).score == 700);
}

TEST_CASE("each block of a version is taken once") {
  Driver driver;
  RoundSpec first = of_peer(0);
  first.block = 1;
  RoundSpec second = of_peer(0);
  second.block = 2;
  CHECK(driver.round(first, progress(7)) == Outcome::mixed);
  CHECK(driver.arrival.block == 1);
  CHECK(driver.round(second, progress(7)) == Outcome::mixed);
  CHECK(driver.round(first, progress(7)) == Outcome::rejected);
}

TEST_CASE("an exchange that only compares takes nothing, and a full one may bring it again") {
  Driver driver;
  for (int i = 0; i < 3; ++i)
    CHECK(driver.round(of_peer(0, compare_only), progress(7)) == Outcome::mixed);
  CHECK(driver.round(of_peer(0), progress(7)) == Outcome::mixed);
  CHECK(driver.round(of_peer(0, compare_only), progress(7)) == Outcome::mixed);
  CHECK(driver.round(of_peer(0, take_over), progress(7)) == Outcome::mixed);
  CHECK(driver.arrival.full);
  CHECK(driver.round(of_peer(0, take_final), progress(7)) == Outcome::mixed);
}

TEST_CASE("a caller in a peer's name does not make a version of it be taken twice") {
  Driver driver;
  driver.round(of_peer(0), progress(7));
  driver.engine.called("w1", ~std::uint64_t{0});
  driver.engine.begin(of_peer(0));
  const auto ask = driver.ask();
  REQUIRE(ask);
  CHECK(ask->known_version == 7);
  CHECK(driver.sends(progress(7)).failure == PeerFailure::protocol);
}

TEST_CASE("a stale peer gives nothing, loses no score, and is not credited with success") {
  PullEngineOptions chosen = measuring();
  chosen.staleness.max_staleness = 5;
  Driver driver({"w1", "w2"}, chosen);
  driver.own = progress(1, 10);
  driver.engine.begin({});
  const auto lagging = driver.ask();
  REQUIRE(lagging);
  CHECK(driver.sends(progress(1, 4)).failure == PeerFailure::stale);
  const auto sound = driver.ask();
  REQUIRE(sound);
  CHECK(sound->peer != lagging->peer);
  driver.sends(progress(1, 9));
  CHECK_FALSE(driver.ask());
  CHECK(driver.arrival.outcome == Outcome::mixed);
  const PeerRecord& record = driver.engine.table().at(lagging->peer);
  CHECK(record.pulls_ok == 0);
  CHECK(record.last_failure == PeerFailure::stale);
  CHECK(record.score == driver.engine.table().at(sound->peer).score);
  // However stale, it may be taken over.
  driver.now += 1s;
  CHECK(driver.round(of_peer(lagging->peer, take_over), progress(1, 4)) == Outcome::mixed);
}

TEST_CASE("a peer that has nothing new is passed over, and blended when it goes on") {
  Driver driver({"w1"});
  CHECK(driver.round(of_peer(0), progress(1, 3)) == Outcome::mixed);
  const auto unchanged = [&driver] {
    driver.engine.begin(of_peer(0));
    REQUIRE(driver.ask());
    driver.fails(PeerFailure::unchanged, false, 1);
    CHECK_FALSE(driver.ask());
    return driver.arrival.outcome;
  };
  for (int i = 0; i < 3; ++i) {
    driver.own.clock += 1;
    driver.now += 10s;
    CHECK(unchanged() == Outcome::skipped);
  }
  CHECK(driver.round(of_peer(0), progress(2, 4)) == Outcome::mixed);
}

TEST_CASE("parameters of another lineage are not blended and are told of, but may be taken over") {
  Driver driver;
  Progress other = progress(1);
  other.lineage = 6;
  CHECK(driver.round(of_peer(0), other) == Outcome::rejected);
  REQUIRE(driver.arrival.other_lineages.size() == 1);
  CHECK(driver.arrival.other_lineages[0].name == "w1");
  CHECK(driver.arrival.other_lineages[0].progress.lineage == 6);
  CHECK(driver.round(of_peer(0, take_over), other, 1e6) == Outcome::mixed);
}

TEST_CASE("parameters that no number can tell the distance of are never taken") {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  for (const Exchange& exchange : {pull_and_blend, take_over, take_final, compare_only}) {
    Driver driver;
    driver.engine.begin(of_peer(0, exchange));
    REQUIRE(driver.ask());
    Answer answer;
    answer.incarnation = 1;
    answer.progress = progress(1);
    driver.engine.landed(answer, {infinite, true}, driver.own);
    const auto settled = driver.engine.settle(answer, false, false, driver.now);
    CHECK((settled.failure == PeerFailure::unusable || settled.failure == PeerFailure::distant));
    CHECK_FALSE(driver.ask());
    CHECK(driver.arrival.refused == 1);
  }
}

TEST_CASE(
    "who only compares is told a distance beyond what is usual, and holds it against nobody") {
  Driver driver({"w1"}, measuring(DistancePolicy::refuse));
  std::uint64_t version = 0;
  while (version < 50) driver.round(of_peer(0), progress(++version), 1);
  CHECK(driver.round(of_peer(0), progress(++version), 1e6) != Outcome::mixed);
  CHECK(driver.round(of_peer(0, compare_only), progress(++version), 1e6) == Outcome::mixed);
  CHECK(driver.arrival.refused == 0);
}

TEST_CASE("a round tells that a distance was no number, which may be the fault of the own model") {
  Driver driver({"w1"}, measuring(DistancePolicy::refuse));
  std::uint64_t version = 0;
  while (version < 50) driver.round(of_peer(0), progress(++version), 1);  // what is usual
  driver.round(of_peer(0), progress(++version), 1e6);
  CHECK(driver.arrival.refused == 1);
  CHECK_FALSE(driver.arrival.incomparable);
  driver.round(of_peer(0), progress(++version), std::numeric_limits<double>::quiet_NaN());
  CHECK(driver.arrival.refused == 1);
  CHECK(driver.arrival.incomparable);
  driver.round(of_peer(0), progress(++version), 1);
  CHECK_FALSE(driver.arrival.incomparable);
}

TEST_CASE("a blend that might overflow is refused") {
  Driver driver;
  driver.engine.begin(of_peer(0));
  REQUIRE(driver.ask());
  CHECK(driver.sends(progress(1), 3, 1, /*may_overflow=*/true).failure == PeerFailure::unusable);
  driver.engine.begin(of_peer(0, compare_only));
  REQUIRE(driver.ask());
  CHECK_FALSE(driver.sends(progress(1), 3, 1, /*may_overflow=*/true).failure);
}

TEST_CASE("the first peer to be heard is measured and not yet blended where distances act") {
  Driver driver({"w1", "w2"}, measuring(DistancePolicy::clip));
  CHECK(driver.round(of_peer(0), progress(1), 1) == Outcome::skipped);
  CHECK(driver.round(of_peer(1), progress(1), 1) == Outcome::mixed);
  CHECK(driver.round(of_peer(0), progress(1), 1) == Outcome::mixed);
}

}  // namespace dpwa
