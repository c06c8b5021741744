#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/rules/peer_names.h"
#include "dpwa/rules/per_peer.h"

using dpwa::ClusterNames;
using dpwa::PeerId;
using dpwa::PeerNames;

namespace {

std::shared_ptr<const ClusterNames> cluster() {
  return std::make_shared<const ClusterNames>(std::vector<std::string>{"a", "b", "c", "d"});
}

}  // namespace

TEST_CASE("each node's peers are the others of the shared names, in their order") {
  const auto shared = cluster();
  for (std::size_t own = 0; own < 4; ++own) {
    CAPTURE(own);
    const PeerNames names(shared, own);
    REQUIRE(names.size() == 3);
    CHECK_FALSE(names.find(shared->at(own)));
    for (PeerId peer = 0; peer < 3; ++peer) {
      CHECK(names.at(peer) == shared->at(peer < own ? peer : peer + 1));
      CHECK(names.find(names.at(peer)) == peer);
    }
  }
  CHECK(PeerNames(shared).size() == 4);
  CHECK(PeerNames(shared).at(3) == "d");
}

TEST_CASE("a place that another node takes has its name, for this table alone") {
  const auto shared = cluster();
  PeerNames names(shared, 1);  // a, c, d
  const PeerNames others(shared, 1);
  names.put(1, "e");
  CHECK(names.at(1) == "e");
  CHECK(names.find("e") == 1U);
  CHECK_FALSE(names.find("c"));
  CHECK(others.find("c") == 1U);
  names.put(3, "c");
  CHECK(names.size() == 4);
  CHECK(names.find("c") == 3U);
  names.put(1, "c");  // of two places, the one that was put last
  CHECK(names.find("c") == 1U);
  CHECK_FALSE(names.find("e"));
  names.put(2, "");
  CHECK(names.at(2).empty());
  CHECK_FALSE(names.find("d"));
  CHECK(names.at(9).empty());
}

TEST_CASE("the first of two nodes with one name is found") {
  const PeerNames names(std::make_shared<const ClusterNames>(std::vector<std::string>(3, "w")));
  CHECK(names.find("w") == 0U);
}

using dpwa::KeptConnections;
using dpwa::nth_absent;
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
