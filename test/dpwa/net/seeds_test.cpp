#include "dpwa/net/seeds.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "dpwa/net/free_ports.h"
#include "dpwa/net/host_names.h"
#include "test/support/eventually.h"
#include "test/support/moving_host.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

using test::MovingHost;
using test::VectorNode;

MemberClaim claim(const std::string& name, const std::string& address, std::uint16_t port) {
  MemberClaim claim;
  claim.name = name;
  claim.addresses = {address};
  claim.port = port;
  return claim;
}

std::vector<std::string> unmet(const SeedPlaces& places, const std::vector<Member>& members = {}) {
  std::vector<std::string> found;
  for (const PeerAddress& each : net::unmet_seeds(places, claim("w1", "127.0.0.1", 7001), members))
    found.push_back(each.addresses.at(0) + ":" + std::to_string(each.port));
  return found;
}

using Places = std::vector<std::string>;

// A node that no file lists, at that address, by a seed that is a name of this port.
Config seeded(const std::string& name, const std::string& address, std::uint16_t port) {
  Config config = test::loopback_config({port}, 0);
  config.nodes[0].name = config.self = name;
  config.nodes[0].host = config.nodes[0].bind_address = address;
  config.nodes[0].addresses = {address};
  NodeEntry seed;
  seed.host = "peers.test";
  seed.port = port;
  config.join = {seed};
  config.self_added = config.by_seeds = true;
  config.gossip.start_wait = std::chrono::milliseconds(200);
  return config;
}

}  // namespace

TEST_CASE("each address of a seed is visited where nobody is known to be") {
  const SeedPlaces places{{{"", {"127.0.0.2", "127.0.0.3"}, 7001}, {"", {"127.0.0.2"}, 7001}},
                          "127.0.0.1"};
  CHECK(unmet(places) == Places{"127.0.0.2:7001", "127.0.0.3:7001"});
  Member there;
  there.claim = claim("w2", "127.0.0.2", 7001);
  there.answers = true;
  CHECK(unmet(places, {there}) == Places{"127.0.0.3:7001"});
  there.answers = false;
  CHECK(unmet(places, {there}).size() == 2);
  there.answers = true;
  there.claim.port = 7002;
  CHECK(unmet(places, {there}).size() == 2);
}

TEST_CASE("a node does not visit itself") {
  const PeerAddress own{"", {"127.0.0.1"}, 7001}, beside{"", {"127.0.0.1"}, 7002};
  CHECK(unmet({{own, beside}, "127.0.0.1"}) == Places{"127.0.0.1:7002"});
  // By another address of this machine.
  const PeerAddress other{"", {"::1"}, 7001};
  CHECK(unmet({{other}, {}}).empty());
  CHECK(unmet({{other}, "127.0.0.1"}).size() == 1);
}

TEST_CASE("a seed whose name is not known yet is looked up for the next time") {
  MovingHost host("later.test", "");
  const SeedPlaces places{{{"", {"later.test"}, 7001, "later.test"}}, "127.0.0.1"};
  CHECK(unmet(places).empty());
  host.move("127.0.0.9");
  CHECK(test::eventually([&] { return unmet(places) == Places{"127.0.0.9:7001"}; }));
}

TEST_CASE("of two clusters that began apart and meet by a seed one takes the elder's weights") {
  MovingHost host("peers.test", "");
  const auto port = net::free_ports(1)[0];
  VectorNode elder(seeded("w2", "127.0.0.2", port), 8, 2);
  elder.gossip().start();
  VectorNode younger(seeded("w1", "127.0.0.3", port), 8, 1);
  younger.gossip().start();
  for (int i = 0; i < 100; ++i) test::step_of(elder);
  for (int i = 0; i < 20; ++i) test::step_of(younger);
  REQUIRE(younger.values()[0] == 1);
  host.move("127.0.0.2");
  REQUIRE(test::eventually([&] {
    for (int i = 0; i < 3; ++i) test::step_of(elder);
    test::step_of(younger);
    return younger.values()[0] == 2;
  }));
  CHECK(elder.values()[0] == 2);
  CHECK(younger.gossip().resume_state().lineage == elder.gossip().resume_state().lineage);
}

}  // namespace dpwa
