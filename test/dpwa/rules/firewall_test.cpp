#include "dpwa/rules/firewall.h"

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
      CHECK(far.refused == (policy == DistancePolicy::refuse));
      // As if it lay where the later bound will be.
      if (!far.refused) CHECK(far.scale == doctest::Approx(2.0 / 600));
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

TEST_CASE("failures that are not the peer's fault are no offences") {
  Firewall firewall(with(DistancePolicy::refuse), peers);
  for (const auto failure : {PeerFailure::timed_out, PeerFailure::unreachable,
                             PeerFailure::rejected, PeerFailure::busy, PeerFailure::not_ready,
                             PeerFailure::stale, PeerFailure::unchanged, PeerFailure::not_fresh}) {
    for (int i = 0; i < 10; ++i) CHECK_FALSE(firewall.failed(0, failure, start));
  }
  CHECK(firewall.record(0).offences == 0);
}

TEST_CASE("a peer that was far away once or comes nearer is neither logged nor an offender") {
  for (const auto policy : {DistancePolicy::warn, DistancePolicy::clip, DistancePolicy::refuse}) {
    Firewall firewall = settled(policy);
    for (const double distance : {800.0, 400.0, 200.0, 100.0, 50.0, 25.0}) {
      const auto verdict = firewall.judge(2, 0, distance);
      CHECK(verdict.gross);
      CHECK_FALSE(verdict.reported);
      if (verdict.refused) {
        CHECK_FALSE(firewall.failed(2, PeerFailure::distant, start));
      } else {
        CHECK_FALSE(firewall.succeeded(2, verdict, start));
      }
    }
    CHECK(firewall.record(2).offences <= 1);
  }
}

TEST_CASE("an unusual gap between the clocks excuses a distance for a while, not for ever") {
  Firewall firewall = settled(DistancePolicy::refuse);
  int excused = 0;
  while (excused < 100 && !firewall.judge(2, 0, 1000, -50).reported) {
    CHECK_FALSE(firewall.failed(2, PeerFailure::distant, start));
    ++excused;
  }
  CHECK(excused == 7);
  CHECK(firewall.record(2).offences == 0);
  bool held = false;
  for (int i = 0; i < 3; ++i) {
    firewall.judge(2, 0, 1000, -50);
    held = firewall.failed(2, PeerFailure::distant, start).has_value();
  }
  CHECK(held);
}

TEST_CASE("the third gross distance in a row is worth a line, block by block") {
  Firewall firewall = settled(DistancePolicy::warn, 0);
  for (int round = 0; round < 8; ++round) {
    for (PeerId peer = 0; peer < peers; ++peer) firewall.judge(peer, 1, 1);
  }
  for (int i = 1; i <= 4; ++i) {
    CHECK(firewall.judge(2, 0, 100).reported == (i >= 3));
    CHECK_FALSE(firewall.judge(2, 1, 1).reported);  // it lies about one block alone
  }
}

TEST_CASE("peers that have drifted apart in a lull neither offend nor are worth a line") {
  for (const auto lull : {0ms, 500ms}) {
    Firewall firewall(with(DistancePolicy::clip), peers);
    TimePoint now = start;
    const auto land = [&](PeerId peer, double distance) {
      now += 10ms;
      const DistanceVerdict verdict = firewall.judge(peer, 0, distance);
      const bool held = firewall.succeeded(peer, verdict, now).has_value();
      return held || verdict.reported;
    };
    for (int round = 0; round < 16; ++round) {
      for (PeerId peer = 0; peer < peers; ++peer) CHECK_FALSE(land(peer, 1));
    }
    now += lull;  // a pull of a stopped peer has taken its whole deadline
    bool accused = false;
    for (int pull = 0; pull < 5; ++pull) accused = land(1, 20 - pull) || accused;
    CHECK(accused == (lull == 0ms));
    // What is still far away when that explains nothing any more is an offence.
    for (PeerId peer = 2; peer < peers; ++peer) CHECK_FALSE(land(peer, 1));
    for (int pull = 0; pull < 8; ++pull) accused = land(1, 20) || accused;
    CHECK(accused);
  }
}
