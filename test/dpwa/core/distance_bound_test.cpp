#include "dpwa/core/distance_bound.h"

#include <doctest/doctest.h>

#include <limits>

using dpwa::DistanceBound;
using dpwa::PeerId;

namespace {

void observe_times(DistanceBound& bound, int times, PeerId peer, double distance) {
  for (int i = 0; i < times; ++i) bound.observe(peer, distance);
}

}  // namespace

TEST_CASE("there is no bound before there are enough samples, then a multiple of their median") {
  DistanceBound bound(2, 3, 4);
  bound.observe(0, 1);
  bound.observe(1, 5);
  CHECK_FALSE(bound.get());
  bound.observe(2, 3);
  CHECK(bound.get().value() == 6);
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

TEST_CASE("of two peers the nearer one sets the bound") {
  DistanceBound bound(2, 8, 2);
  for (int round = 0; round < 50; ++round) {
    bound.observe(0, 100);
    bound.observe(1, 1);
  }
  CHECK(bound.get().value() == 2);
}

TEST_CASE("distances of all peers that grow or shrink a hundredfold are followed") {
  for (const double changed : {100.0, 0.01}) {
    DistanceBound bound(2, 8, 4);
    for (int round = 0; round < 8; ++round) {
      for (PeerId peer = 0; peer < 4; ++peer) bound.observe(peer, 1);
    }
    int pulls = 0;
    while (pulls < 1000 && (bound.get().value() < changed || bound.get().value() > 4 * changed))
      bound.observe(static_cast<PeerId>(pulls++ % 4), changed);
    CAPTURE(pulls);
    CHECK(pulls <= 8 * 16);
    CHECK(pulls > 10);  // and not by a few of them
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
