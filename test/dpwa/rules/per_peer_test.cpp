#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/rules/per_peer.h"

using dpwa::KeptConnections;
using dpwa::nth_absent;
using dpwa::PeerId;
using dpwa::PeerSet;
using dpwa::PerPeer;
using dpwa::Random;

TEST_CASE("the numbers that a set lacks are counted from zero") {
  const std::vector<PeerId> sorted{0, 1, 4, 6};
  const std::vector<PeerId> absent{2, 3, 5, 7, 8};
  for (std::size_t i = 0; i < absent.size(); ++i) CHECK(nth_absent(sorted, i) == absent[i]);
  CHECK(nth_absent({}, 5) == 5);
}

TEST_CASE("values per peer are those of a map, whatever is put in and taken out") {
  Random random(2);
  PerPeer<int> values;
  PeerSet set;
  std::map<PeerId, int> reference;
  for (int i = 0; i < 3000; ++i) {
    const auto peer = static_cast<PeerId>(random.below(60));
    if (random.bernoulli(0.5)) {
      values[peer] = reference[peer] = i;
      set.insert(peer);
    } else {
      values.erase(peer);
      reference.erase(peer);
      set.erase(peer);
    }
    REQUIRE(values.size() == reference.size());
    REQUIRE(set.size() == reference.size());
    for (PeerId one = 0; one < 60; ++one) {
      const int* found = values.find(one);
      const auto expected = reference.find(one);
      REQUIRE((found != nullptr) == (expected != reference.end()));
      REQUIRE(set.contains(one) == (found != nullptr));
      if (found == nullptr) continue;
      REQUIRE(*found == expected->second);
      REQUIRE(values.entries()[values.position(one)].peer == one);
    }
  }
  CHECK(values.at_or(77, 5) == 5);
  CHECK(values.at_or(77, 6) == 5);
  values.clear();
  CHECK(values.find(77) == nullptr);
}

TEST_CASE("the connection that was used longest ago is closed for one too many") {
  KeptConnections kept(2);
  CHECK_FALSE(kept.use(1));
  CHECK_FALSE(kept.use(2));
  CHECK_FALSE(kept.use(1));
  CHECK(kept.use(3) == PeerId{2});
  CHECK_FALSE(kept.use(3));
  CHECK(kept.use(2) == PeerId{1});
}
