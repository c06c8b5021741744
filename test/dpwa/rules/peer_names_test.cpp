#include "dpwa/rules/peer_names.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

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
