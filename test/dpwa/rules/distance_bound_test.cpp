#include "dpwa/rules/distance_bound.h"

#include <doctest/doctest.h>

#include <limits>

using dpwa::DistanceBound;
using dpwa::PeerId;

namespace {

void observe_times(DistanceBound& bound, int times, PeerId peer, double distance) {
  for (int i = 0; i < times; ++i) bound.observe(peer, distance);
}

}  // namespace

TEST_CASE("with enough samples the bound is a multiple of their median") {
  DistanceBound bound(2, 3, 4);
  bound.observe(0, 1);
  bound.observe(1, 5);
  CHECK_FALSE(bound.settled());
  bound.observe(2, 3);
  CHECK(bound.settled());
  CHECK(bound.get().value() == 6);
}

TEST_CASE("before that a wider one comes from the nearer of two peers") {
  DistanceBound bound(2, 8, 4);
  CHECK_FALSE(bound.observe(0, 1000));
  CHECK(bound.waits_for_another());
  CHECK_FALSE(bound.observe(0, 1000));
  CHECK(bound.observe(1, 1).value() == 10);
  CHECK_FALSE(bound.waits_for_another());
  CHECK(bound.observe(0, 1000).value() == 10);
  CHECK(bound.observe(2, 2).value() == 20);  // of three the one in the middle
  SUBCASE("and what came from far away before counts as no more than it in the first median") {
    observe_times(bound, 3, 2, 2);
    CHECK(bound.settled());
    CHECK(bound.get().value() <= 20);
  }
}

TEST_CASE("a single peer is waited for until there are enough samples, an only one is not") {
  DistanceBound silent(2, 8, 3);
  observe_times(silent, 7, 0, 1);
  CHECK(silent.waits_for_another());
  silent.observe(0, 1);
  CHECK_FALSE(silent.waits_for_another());
  CHECK(silent.get().value() == 2);
  DistanceBound only(2, 8, 1);
  only.observe(0, 1);
  CHECK_FALSE(only.get());
  CHECK_FALSE(only.waits_for_another());
}

TEST_CASE("distances of zero and NaN are no samples") {
  DistanceBound bound(2, 1, 4);
  bound.observe(0, 0);
  bound.observe(0, std::numeric_limits<double>::quiet_NaN());
  CHECK_FALSE(bound.get());
}

TEST_CASE("one of three peers that is a hundred times further away does not move the bound") {
  DistanceBound bound(2, 8, 3);
  for (int round = 0; round < 100; ++round) {
    for (const PeerId honest : {0U, 1U}) bound.observe(honest, 1);
    bound.observe(2, 100);
  }
  CHECK(bound.get().value() == 2);
}

TEST_CASE("a far peer that answers more often than the others does not move the bound") {
  DistanceBound bound(2, 8, 8);
  for (PeerId peer = 0; peer < 7; ++peer) observe_times(bound, 4, peer, 1);
  observe_times(bound, 200, 7, 100);
  CHECK(bound.get().value() == 2);
}

TEST_CASE("the nearer of two peers sets the bound") {
  DistanceBound bound(2, 8, 2);
  for (int round = 0; round < 50; ++round) {
    bound.observe(0, 100);
    bound.observe(1, 1);
  }
  CHECK(bound.get().value() == 2);
}

TEST_CASE("distances of all peers that shrink a hundredfold are followed within a window or two") {
  DistanceBound bound(2, 8, 4);
  for (int round = 0; round < 8; ++round) {
    for (PeerId peer = 0; peer < 4; ++peer) bound.observe(peer, 1);
  }
  int pulls = 0;
  while (pulls < 1000 && bound.get().value() > 0.04)
    bound.observe(static_cast<PeerId>(pulls++ % 4), 0.01);
  CHECK(pulls <= 2 * 32);
  CHECK(pulls > 10);  // and not by a few of them
}

TEST_CASE("a single peer's distances that grow are followed, each half window twice as far") {
  DistanceBound bound(2, 8, 1);
  observe_times(bound, 32, 0, 1);
  int pulls = 0;
  for (; pulls < 1000 && bound.get().value() < 100; ++pulls) bound.observe(0, 100);
  CHECK(pulls <= 8 * 16);
  CHECK(pulls > 4 * 16);
}

TEST_CASE("where more than half of the peers come from far away, the bound is theirs at once") {
  DistanceBound bound(2, 8, 4);
  for (int round = 0; round < 8; ++round) {
    for (PeerId peer = 0; peer < 4; ++peer) bound.observe(peer, 1);
  }
  CHECK(bound.observe(0, 100).value() == 2);
  CHECK(bound.observe(1, 110).value() == 2);
  SUBCASE("counting the one that is judged by it") {
    CHECK(bound.observe(2, 120).value() == 200);
    CHECK(bound.get().value() == 200);
  }
  SUBCASE("but not half of them, however often they come") {
    for (int i = 0; i < 50; ++i) {
      bound.observe(0, 100);
      bound.observe(1, 110);
      bound.observe(2, 1);
      CHECK(bound.observe(3, 1).value() < 50);
    }
  }
  SUBCASE("and no more once they are near again") {
    bound.observe(2, 120);
    bound.observe(1, 1);
    bound.observe(2, 1);
    CHECK(bound.get().value() == 2);
  }
  SUBCASE("not where it is too large for a number") {
    for (const PeerId peer : {1U, 2U, 3U})
      bound.observe(peer, std::numeric_limits<double>::infinity());
    CHECK(bound.get().value() <= 200);
  }
  SUBCASE("nor for a process that has just begun, until it has been near") {
    bound.restarted(2);
    for (int i = 0; i < 3; ++i) CHECK(bound.observe(2, 120).value() == 2);
    bound.observe(2, 1);
    CHECK(bound.observe(2, 120).value() == 200);
  }
  SUBCASE("counting nobody who has never been near") {
    bound.observe(4, 130);
    bound.observe(5, 130);
    CHECK(bound.get().value() == 2);
    CHECK(bound.observe(2, 120).value() == 200);
  }
  SUBCASE("nor for what one sent that has left its place to another") {
    bound.forget(0);
    bound.observe(0, 1);
    CHECK(bound.observe(2, 120).value() == 2);
  }
}

TEST_CASE("the samples of peers that have left are forgotten") {
  DistanceBound bound(2, 8, 8);
  for (PeerId peer = 0; peer < 7; ++peer) observe_times(bound, 8, peer, 100);
  for (std::uint64_t i = 0; i < 2 * DistanceBound::max_age; ++i) bound.observe(7, 1);
  CHECK(bound.get().value() == 2);
}

TEST_CASE("an infinite distance counts as no more than the bound") {
  DistanceBound bound(2, 2, 4);
  observe_times(bound, 2, 0, 1);
  bound.observe(1, std::numeric_limits<double>::infinity());
  bound.observe(2, std::numeric_limits<double>::infinity());
  CHECK(bound.get().value() <= 4);
}

TEST_CASE("most others are within the bound or not, whatever this peer sends") {
  DistanceBound bound(2, 8, 4);
  bound.observe(0, 100);
  CHECK_FALSE(bound.most_others_are_within(0, 2));  // nobody else has been heard
  bound.observe(1, 1);
  CHECK(bound.most_others_are_within(0, 2));
  bound.observe(2, 100);
  CHECK_FALSE(bound.most_others_are_within(0, 2));
  bound.observe(3, 1);
  CHECK(bound.most_others_are_within(0, 2));
}
