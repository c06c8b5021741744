#include "dpwa/core/firewall.h"

#include <doctest/doctest.h>

#include <limits>

using namespace std::chrono_literals;
using namespace dpwa;

namespace {

constexpr TimePoint start = TimePoint() + 1h;
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
  for (int i = 0; i < 3; ++i) firewall.failed(1, PeerFailure::unusable, start);
  REQUIRE(firewall.record(1).quarantines == 1);
  firewall.put(1);
  firewall.put(peers);
  CHECK(firewall.record(1).quarantines == 0);
  CHECK(firewall.record(peers).offences == 0);
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
  for (int i = 0; i < 10; ++i) CHECK_FALSE(firewall.succeeded(0, verdict, start));
}

TEST_CASE("clip scales the factor so that no more than the bound is moved towards") {
  Firewall firewall = settled(DistancePolicy::clip);
  const auto verdict = firewall.judge(0, 0, 100);
  CHECK(verdict.scale == doctest::Approx(0.02));
  CHECK_FALSE(verdict.refused);
  CHECK(firewall.counters().clipped == 1);
}

TEST_CASE("clip refuses a distance that is too large for a number") {
  Firewall firewall = settled(DistancePolicy::clip);
  CHECK(firewall.judge(0, 0, std::numeric_limits<double>::infinity()).refused);
  CHECK(firewall.counters().clipped == 0);
  CHECK(firewall.counters().refused == 1);
}

TEST_CASE("refuse keeps distant parameters out and counts them") {
  Firewall firewall = settled(DistancePolicy::refuse);
  CHECK(firewall.judge(0, 0, 2.1).refused);
  CHECK(firewall.counters().refused == 1);
}

TEST_CASE(
    "nothing is beyond the bound in the first pulls and after the own weights were replaced") {
  Firewall firewall(with(DistancePolicy::refuse), peers);
  for (const double growing : {1e-9, 1e-6, 1e-3, 1.0, 10.0, 20.0, 30.0, 40.0})
    CHECK_FALSE(firewall.judge(0, 0, growing).beyond);
  Firewall replaced = settled(DistancePolicy::refuse);
  replaced.replaced();
  CHECK_FALSE(replaced.judge(0, 0, 100).beyond);
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

TEST_CASE("the final average leaves out what is several bounds away, and clips nothing") {
  for (const auto policy : {DistancePolicy::clip, DistancePolicy::refuse}) {
    Firewall firewall = settled(policy);
    CHECK_FALSE(firewall.judge_final(9.9).refused);
    CHECK(firewall.judge_final(9.9).scale == 1);
    CHECK(firewall.judge_final(10.1).refused);
  }
  for (const auto policy : {DistancePolicy::off, DistancePolicy::warn})
    CHECK_FALSE(settled(policy).judge_final(1e9).refused);
  CHECK_FALSE(Firewall(with(DistancePolicy::refuse), peers).judge_final(1e9).refused);
}

TEST_CASE("the bound of the final average is put together from those of the blocks") {
  Firewall firewall = settled(DistancePolicy::refuse, 1);
  CHECK_FALSE(firewall.judge_final(1e9).refused);  // block 0 has none yet
  for (int round = 0; round < 8; ++round) {
    for (PeerId peer = 0; peer < peers; ++peer) firewall.judge(peer, 0, 1);
  }
  CHECK_FALSE(firewall.judge_final(14.1).refused);  // 5 * sqrt(2^2 + 2^2)
  CHECK(firewall.judge_final(14.2).refused);
}

TEST_CASE("one peer that is refused again and again is quarantined") {
  Firewall firewall = settled(DistancePolicy::refuse);
  bool held = false;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(firewall.judge(2, 0, 100).refused);
    held = firewall.failed(2, PeerFailure::distant, start).has_value();
  }
  CHECK(held);
}

TEST_CASE("one that is refused by a little, as an honest straggler is, is not quarantined") {
  Firewall firewall = settled(DistancePolicy::refuse);
  for (int i = 0; i < 10; ++i) {
    REQUIRE(firewall.judge(2, 0, 9).refused);
    CHECK_FALSE(firewall.failed(2, PeerFailure::distant, start));
  }
}

TEST_CASE("with clip a peer that is grossly far away again and again is quarantined") {
  for (const double distance : {9.0, 11.0}) {
    Firewall firewall = settled(DistancePolicy::clip);
    bool held = false;
    for (int i = 0; i < 3; ++i) {
      const auto verdict = firewall.judge(2, 0, distance);
      REQUIRE(verdict.scale < 1);
      held = firewall.succeeded(2, verdict, start).has_value();
    }
    CHECK(held == (distance > 10));
  }
}

TEST_CASE("a node that is itself far from all others quarantines none of them") {
  Firewall firewall = settled(DistancePolicy::refuse);
  for (int i = 0; i < 200; ++i) {
    const auto peer = static_cast<PeerId>(i % peers);
    if (firewall.judge(peer, 0, 1000).refused) {
      CHECK_FALSE(firewall.failed(peer, PeerFailure::distant, start));
    } else {
      CHECK_FALSE(firewall.succeeded(peer, {}, start));
    }
  }
  CHECK_FALSE(firewall.judge(0, 0, 1000).refused);  // and has got used to the distance
}

TEST_CASE("an only peer is never quarantined for its distance, but for what is not finite") {
  Firewall firewall(with(DistancePolicy::refuse), 1);
  for (int i = 0; i < 8; ++i) firewall.judge(0, 0, 1);
  for (int i = 0; i < 10; ++i) CHECK_FALSE(firewall.failed(0, PeerFailure::distant, start));
  CHECK_FALSE(firewall.failed(0, PeerFailure::unusable, start));
  CHECK_FALSE(firewall.failed(0, PeerFailure::unusable, start));
  CHECK(firewall.failed(0, PeerFailure::unusable, start));
  CHECK(firewall.counters().not_finite == 3);
}

TEST_CASE("failures that are nobody's fault are no offences") {
  Firewall firewall(with(DistancePolicy::refuse), peers);
  for (const auto failure :
       {PeerFailure::timed_out, PeerFailure::unreachable, PeerFailure::rejected, PeerFailure::busy,
        PeerFailure::not_ready, PeerFailure::stale, PeerFailure::unchanged}) {
    for (int i = 0; i < 10; ++i) CHECK_FALSE(firewall.failed(0, failure, start));
  }
  CHECK(firewall.record(0).offences == 0);
}
