#include <doctest/doctest.h>

#include <algorithm>
#include <list>

#include "dpwa/net/free_ports.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/fake_peer.h"
#include "test/dpwa/net/one_peer.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"

// Rounds over more than one peer, and their end.

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::FakePeer;
using test::PullingNode;
using test::RawSocket;
using test::ReplayingPeer;
using test::ServedNode;

PeerAddress at(std::string name, std::uint16_t port) {
  return {std::move(name), {"127.0.0.1"}, port};
}

// Many first rounds between the sound w1 and the peer at `hostile`, each by another seed: whichever
// is asked first, the round brings the parameters of w1.
void check_every_round_succeeds(std::uint16_t hostile) {
  ServedNode sound;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    PullingNode node({at("w1", sound.port()), at("w3", hostile)}, 16, seed);
    const Arrival arrival = node.pull();
    CHECK(arrival.outcome == Outcome::mixed);
    CHECK(arrival.peer_name == "w1");
    CHECK(std::ranges::all_of(node.landed(), [](float value) { return value == 1.0F; }));
  }
}

}  // namespace

TEST_CASE("after a failure the round goes on with the next peer") {
  SUBCASE("connection refused") {
    check_every_round_succeeds(net::free_ports(1)[0]);
  }
  SUBCASE("a wrong checksum") {
    FakePeer hostile([](RawSocket& connection) {
      if (!test::welcome(connection, "w3")) return;
      const auto request = test::read_pull(connection);
      if (!request) return;
      auto frame = test::snapshot_frame(*request, std::vector<float>(16, 9.0F));
      frame.back() ^= std::byte{1};
      connection.send(frame);
      connection.ended_by_other_side();
    });
    check_every_round_succeeds(hostile.port());
    CHECK(hostile.connections() > 0);
  }
  SUBCASE("another name than the one dialled") {
    FakePeer hostile([](RawSocket& connection) {
      test::welcome(connection, "w7");
      connection.ended_by_other_side();
    });
    check_every_round_succeeds(hostile.port());
    CHECK(hostile.connections() > 0);
  }
}

TEST_CASE("what a peer states is heard after the delay of a pull, not before") {
  PullingNode node({});
  node.local().keeps_ledger = true;
  const auto waiting = [&] {
    int peers = 0;
    node.local().statements.take([&peers](const std::string&, Statements::Statement) { ++peers; });
    return peers;
  };
  PullSpec spec;
  spec.timeout = test::patience;
  spec.delay = std::chrono::milliseconds(1);
  node.local().statements.put("w1", {1, 5});
  node.pull(spec);
  CHECK(waiting() == 0);
  spec.delay = std::chrono::hours(1);
  node.local().statements.put("w1", {1, 6});
  REQUIRE(node.client().begin(spec));
  node.client().greet_all(test::patience);  // behind the beginning of the pull
  CHECK(waiting() == 1);
}

TEST_CASE("a kept connection that the peer has closed meanwhile costs a new one, not the pull") {
  ReplayingPeer peer({1, 2, 3, 4, 5}, ReplayingPeer::After::hangs_up);
  PullingNode node({peer.address()});
  for (int i = 1; i <= 5; ++i) {
    CHECK(node.pull().outcome == Outcome::mixed);
    CHECK(peer.connections() == i);
  }
}

TEST_CASE("a snapshot that was taken before is not sent again") {
  ServedNode served;
  PullingNode node({at("w1", served.port())});
  CHECK(node.pull().outcome == Outcome::mixed);
  CHECK(node.pull().outcome == Outcome::skipped);
  REQUIRE(test::eventually([&] { return served.publish(3.0F); }));
  CHECK(node.pull().outcome == Outcome::mixed);
  CHECK(node.landed()[0] == 3.0F);
}

TEST_CASE("greeting asks every peer at once and tells apart what each is") {
  ServedNode sound;
  ServedNode other(17);
  FakePeer silent([](RawSocket& connection) { connection.ended_by_other_side(); });
  PullingNode node({at("w1", sound.port()), at("w3", silent.port()),
                    at("w4", net::free_ports(1)[0]), at("w1", other.port())});
  const auto greeted = node.client().greet_all(3s);
  REQUIRE(greeted.size() == 4);
  CHECK_FALSE(greeted[0].failure);
  CHECK(greeted[0].welcome.node == "w1");
  CHECK(greeted[0].welcome.state == wire::NodeState::ready);
  CHECK(greeted[0].welcome.clock == 1.0);
  CHECK(greeted[1].failure);
  CHECK(greeted[2].failure == PeerFailure::unreachable);
  CHECK(greeted[3].failure == PeerFailure::rejected);
}

TEST_CASE("a client that stops does not try the peers that are left") {
  std::list<FakePeer> silent;
  std::vector<PeerAddress> peers;
  for (int i = 0; i < 4; ++i) {
    silent.emplace_back([](RawSocket& connection) { connection.ended_by_other_side(); });
    peers.push_back(at("p" + std::to_string(i), silent.back().port()));
  }
  PullingNode node(peers);
  PullSpec spec;
  spec.timeout = std::chrono::hours(1);
  REQUIRE(node.client().begin(spec));
  const auto connections = [&silent] {
    int sum = 0;
    for (const FakePeer& peer : silent) sum += peer.connections();
    return sum;
  };
  REQUIRE(test::eventually([&] { return connections() == 1; }));
  node.stop();
  CHECK(connections() == 1);
  CHECK_FALSE(node.client().begin(spec));
}

TEST_CASE("a client that stops before its pull has begun to connect leaves at once") {
  FakePeer silent([](RawSocket& connection) { connection.ended_by_other_side(); });
  for (int i = 0; i < 50; ++i) {
    PullingNode node({at("w1", silent.port())});
    PullSpec spec;
    spec.timeout = std::chrono::hours(1);  // which this test would take
    REQUIRE(node.client().begin(spec));
    node.stop();
  }
}

}  // namespace dpwa
