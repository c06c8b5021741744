#include "dpwa/rules/firewall.h"

#include <doctest/doctest.h>

#include <limits>

using namespace dpwa;

namespace {

constexpr std::size_t peers = 4;

FirewallOptions with(DistancePolicy policy) {
  FirewallOptions options;
  options.distance = policy;
  return options;
}

// A firewall that has seen every peer at a distance of 1, so that the bound is 2.
Firewall settled(DistancePolicy policy, unsigned block = 0) {
  Firewall firewall(with(policy), peers);
  for (int round = 0; round < 8; ++round) {
    for (PeerId peer = 0; peer < peers; ++peer) firewall.judge(peer, block, 1);
  }
  return firewall;
}

}  // namespace

TEST_CASE("a peer that comes later has no past, in a new place or that of another") {
  Firewall firewall = settled(DistancePolicy::refuse);
  firewall.put(1);
  firewall.put(peers);
  CHECK(firewall.judge(peers, 0, 1).bound == 2);  // of all peers
  CHECK(firewall.judge(peers, 0, 3).refused);
}

TEST_CASE("parameters within the bound pass untouched under every policy") {
  for (const auto policy :
       {DistancePolicy::off, DistancePolicy::warn, DistancePolicy::clip, DistancePolicy::refuse}) {
    Firewall firewall = settled(policy);
    const auto verdict = firewall.judge(0, 0, 1.9);
    CHECK_FALSE(verdict.beyond);
    CHECK_FALSE(verdict.refused);
    CHECK(verdict.scale == 1);
  }
}

TEST_CASE("off lets parameters pass at any distance, uncounted") {
  Firewall firewall = settled(DistancePolicy::off);
  CHECK_FALSE(firewall.judge(0, 0, 1e9).beyond);
  CHECK(firewall.counters().warned == 0);
}

TEST_CASE("warn lets distant parameters pass and counts them") {
  Firewall firewall = settled(DistancePolicy::warn);
  const auto verdict = firewall.judge(0, 0, 100);
  CHECK(verdict.beyond);
  CHECK(verdict.bound == 2);
  CHECK_FALSE(verdict.refused);
  CHECK(verdict.scale == 1);
  CHECK(verdict.gross);
  CHECK(firewall.counters().warned == 1);
  CHECK_FALSE(firewall.judge(0, 0, 9).gross);
}

TEST_CASE("clip scales the factor so that no more than the bound is moved towards") {
  Firewall firewall = settled(DistancePolicy::clip);
  const auto verdict = firewall.judge(0, 0, 8);
  CHECK(verdict.scale == doctest::Approx(0.25));
  CHECK_FALSE(verdict.refused);
  CHECK(firewall.counters().clipped == 1);
}

TEST_CASE("a distance that is too large for a number is refused under every policy, at any time") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto policy :
       {DistancePolicy::off, DistancePolicy::warn, DistancePolicy::clip, DistancePolicy::refuse}) {
    for (const bool late : {false, true}) {
      Firewall firewall = late ? settled(policy) : Firewall(with(policy), peers);
      CHECK(firewall.judge(0, 0, infinity).refused);
      CHECK(firewall.counters().clipped == 0);
      CHECK(firewall.counters().refused == 1);
    }
  }
}

TEST_CASE("refuse keeps distant parameters out and counts them") {
  Firewall firewall = settled(DistancePolicy::refuse);
  CHECK(firewall.judge(0, 0, 2.1).refused);
  CHECK(firewall.counters().refused == 1);
}

TEST_CASE("the first peer heard is only measured, before the first step and after a takeover") {
  for (const auto policy : {DistancePolicy::clip, DistancePolicy::refuse}) {
    for (const bool takeover : {false, true}) {
      CAPTURE(static_cast<int>(policy));
      CAPTURE(takeover);
      Firewall firewall = takeover ? settled(policy) : Firewall(with(policy), peers);
      firewall.replaced();
      CHECK(firewall.judge(0, 0, 600).unproven);
      CHECK(firewall.judge(0, 0, 600).unproven);
      CHECK_FALSE(firewall.judge(0, 0, 0).unproven);  // nothing to blend
      const auto near = firewall.judge(1, 0, 1);
      CHECK_FALSE(near.unproven);
      CHECK_FALSE(near.beyond);
      const auto far = firewall.judge(0, 0, 600);
      CHECK(far.bound == 10);
      CHECK(far.gross);
      CHECK(far.refused);
    }
  }
}

TEST_CASE("nothing is only measured under off and warn, nor of an only peer") {
  for (const auto policy : {DistancePolicy::off, DistancePolicy::warn})
    CHECK_FALSE(Firewall(with(policy), peers).judge(0, 0, 600).unproven);
  CHECK_FALSE(Firewall(with(DistancePolicy::clip), 1).judge(0, 0, 600).unproven);
}

TEST_CASE(
    "distances that grow tenfold in the first pulls, as those of honest nodes may, all pass") {
  Firewall firewall(with(DistancePolicy::refuse), peers);
  REQUIRE(firewall.judge(3, 0, 1).unproven);
  double distance = 1;
  for (int pull = 0; pull < 12; ++pull) {
    CHECK_FALSE(firewall.judge(static_cast<PeerId>(pull % 3), 0, distance).refused);
    distance += pull < 7 ? 1 : 0;
  }
}

TEST_CASE("a node that finds most peers far away follows them, unless they have only just begun") {
  for (const bool restart : {false, true}) {
    CAPTURE(restart);
    Firewall firewall = settled(DistancePolicy::refuse);
    for (PeerId peer = 0; peer < 3; ++peer) {
      firewall.judge(peer, 0, 1);
      if (restart) firewall.restarted(peer);
      firewall.judge(peer, 0, 100);
    }
    CHECK(firewall.judge(3, 0, 100).refused == restart);
  }
}

TEST_CASE("own parameters that are not finite make no peer an offender") {
  Firewall firewall = settled(DistancePolicy::refuse);
  CHECK_FALSE(firewall.judge(0, 0, std::numeric_limits<double>::quiet_NaN()).beyond);
}

TEST_CASE("every block has distances of its own") {
  Firewall firewall = settled(DistancePolicy::refuse, 3);
  for (int round = 0; round < 8; ++round) {
    for (PeerId peer = 0; peer < peers; ++peer) firewall.judge(peer, 5, 1000);
  }
  CHECK(firewall.judge(0, 3, 1000).refused);
  CHECK_FALSE(firewall.judge(0, 5, 1000).refused);
  CHECK(firewall.judge(0, 5, 3000).refused);
}

TEST_CASE("clip refuses what is grossly far away, while most other peers are near") {
  for (const double distance : {9.0, 11.0}) {
    Firewall firewall = settled(DistancePolicy::clip);
    const auto verdict = firewall.judge(2, 0, distance);
    CHECK(verdict.gross == (distance > 10));
    CHECK(verdict.refused == verdict.gross);
    CHECK((verdict.scale < 1) != verdict.refused);
  }
}

TEST_CASE("after many steps alone the first peer that is heard is clipped, not refused") {
  for (const std::uint64_t usual : {1U, 20U}) {
    CAPTURE(usual);
    Firewall firewall(with(DistancePolicy::clip), peers);
    std::uint64_t version = 0;
    const auto judge = [&](std::uint64_t steps, PeerId peer, double distance) {
      firewall.at_version(version += steps);
      return firewall.judge(peer, 0, distance);
    };
    for (int round = 0; round < 20; ++round) {
      for (PeerId peer = 0; peer < peers; ++peer) judge(usual, peer, 1);
    }
    CHECK(judge(usual, 0, 100).gross);
    CHECK(judge(4 * usual, 0, 100).gross);
    const auto first = judge(20 * usual, 0, 100);
    CHECK_FALSE(first.refused);
    CHECK(first.scale == doctest::Approx(0.02).epsilon(0.01));
    CHECK_FALSE(judge(usual, 1, 50).refused);
    CHECK_FALSE(judge(usual, 2, 1).beyond);
    CHECK_FALSE(judge(usual, 3, 1).beyond);
    CHECK(judge(usual, 0, 100).gross);  // others are near
  }
}

TEST_CASE("the third gross distance in a row is an offence, under every policy that measures") {
  for (const auto policy : {DistancePolicy::warn, DistancePolicy::clip, DistancePolicy::refuse}) {
    Firewall firewall = settled(policy);
    for (int row = 0; row < 3; ++row) {
      for (int i = 1; i <= 4; ++i) CHECK(firewall.judge(2, 0, 100).offends == (i >= 3));
      CHECK_FALSE(firewall.judge(2, 0, 1).gross);
    }
  }
}

TEST_CASE("a node that is itself far from all others clips them, and gets used to the distance") {
  for (const auto policy : {DistancePolicy::clip, DistancePolicy::refuse}) {
    Firewall firewall = settled(policy);
    firewall.judge(0, 0, 1000);
    firewall.judge(1, 0, 1000);
    CHECK_FALSE(firewall.judge(2, 0, 1000).gross);  // most others were as far at last
    for (int i = 0; i < 8; ++i) firewall.judge(static_cast<PeerId>(i % peers), 0, 1000);
    CHECK_FALSE(firewall.judge(0, 0, 1000).beyond);
  }
}

TEST_CASE("an only peer is never grossly far away") {
  for (const auto policy : {DistancePolicy::clip, DistancePolicy::refuse}) {
    Firewall firewall(with(policy), 1);
    for (int i = 0; i < 8; ++i) firewall.judge(0, 0, 1);
    const auto verdict = firewall.judge(0, 0, 1000);
    CHECK(verdict.beyond);
    CHECK_FALSE(verdict.gross);
  }
}

TEST_CASE("a distance that rounding can make is not beyond the bound, and is asked for only then") {
  for (const auto policy : {DistancePolicy::clip, DistancePolicy::refuse}) {
    Firewall firewall = settled(policy);
    int asked = 0;
    const auto rounding = [&asked] {
      ++asked;
      return 30.0;
    };
    CHECK_FALSE(firewall.judge(0, 0, 2, rounding).beyond);
    CHECK(asked == 0);
    const auto verdict = firewall.judge(0, 0, 60, rounding);
    CHECK(asked == 1);
    CHECK(verdict.bound == 60);
    CHECK_FALSE(verdict.beyond);
    CHECK(verdict.scale == 1);
    CHECK(firewall.judge(1, 0, 61, rounding).beyond);
  }
}
