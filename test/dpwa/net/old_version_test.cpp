#include <doctest/doctest.h>

#include <algorithm>
#include <boost/endian/conversion.hpp>

#include "dpwa/gossip/gossip_node.h"
#include "dpwa/net/client.h"
#include "test/dpwa/net/one_peer.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"

// A peer that sends a version again that has been taken from it already, and a peer that lags, over
// their connections. What a node makes of them, and of one that has stopped, is in
// test/dpwa/engine/pull_engine_test.cpp.

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::OnePeer;
using test::PullingNode;
using test::PullSeen;
using test::RawSocket;
using test::ReplayingPeer;
using test::sound_reply;

// Of the only peer, backing off or not.
Outcome outcome_of_next(PullingNode& node) {
  PullSpec spec;
  spec.peer = 0;
  spec.timeout = 30s;
  return node.pull(spec).outcome;
}

}  // namespace

TEST_CASE("a version that was taken is refused when it comes again, as a broken protocol is") {
  ReplayingPeer peer({7});
  PullingNode node({peer.address()});
  REQUIRE(outcome_of_next(node) == Outcome::mixed);
  for (int i = 0; i < 3; ++i) CHECK(outcome_of_next(node) == Outcome::rejected);
  node.stop();
  CHECK(test::eventually([&] { return peer.answers() == 4; }));  // counted once it is sent
  CHECK(node.client().table().at(0).last_failure == PeerFailure::protocol);
  CHECK(node.client().table().at(0).pulls_ok == 1);
  CHECK(node.client().table().at(0).failures == 3);
}

}  // namespace dpwa

// transport.checksum: off. Chunks travel without checksums when both ends want that, and only then.

namespace dpwa {
namespace {

using test::ServedNode;

constexpr std::uint32_t without_checksums = wire::unchecked_chunks_capability;

// The checksum field of the first chunk of a SNAPSHOT.
std::uint32_t first_checksum(const test::RawFrame& frame) {
  const auto* field = reinterpret_cast<const unsigned char*>(frame.body.data());
  return boost::endian::load_little_u32(field + wire::snapshot_head_bytes + 4);
}

test::RawFrame pull_from(ServedNode& node, bool unchecked_chunks) {
  RawSocket socket(node.port());
  REQUIRE(test::introduce(socket));
  wire::Pull pull;
  pull.deadline_ms = 10000;
  pull.unchecked_chunks = unchecked_chunks;
  REQUIRE(socket.send(wire::encode(pull, 2)));
  auto frame = socket.read_frame();
  REQUIRE(frame.has_value());
  REQUIRE(frame->header.type == wire::MessageType::snapshot);
  return *frame;
}

void turn_checksums_off(Config& config) {
  config.transport.checksum = false;
}

}  // namespace

TEST_CASE("a node leaves checksums out only when it is set so and the pull says so") {
  ServedNode checked;
  ServedNode unchecked(16, {}, {}, /*chunk_checksums=*/false);
  CHECK(first_checksum(pull_from(unchecked, true)) == 0);
  CHECK(first_checksum(pull_from(unchecked, false)) != 0);
  CHECK(first_checksum(pull_from(checked, true)) != 0);
}

TEST_CASE("a node without checksums asks for none where the peer wants none, and blends") {
  std::uint32_t capabilities = test::sound_hello().capabilities;
  bool expected = false;
  SUBCASE("the peer wants none") {
    capabilities |= without_checksums;
    expected = true;
  }
  SUBCASE("the peer wants checksums") {}
  std::atomic<int> asked_for{-1};
  OnePeer pair(
      [&](RawSocket& socket, const PullSeen& request) {
        asked_for = request.pull.unchecked_chunks;
        socket.send(test::sound_reply(request));
      },
      test::patience, turn_checksums_off, capabilities);
  CHECK(pair.step().outcome == Outcome::mixed);
  CHECK(std::ranges::all_of(pair.node().values(), [](float value) { return value == 2.0F; }));
  CHECK(asked_for == static_cast<int>(expected));
}

TEST_CASE("a checksum in a chunk that should have none is rejected") {
  OnePeer pair(
      [](RawSocket& socket, const PullSeen& request) {
        auto frame = test::sound_reply(request);
        frame[test::payload_at(0) - 1] ^= std::byte{1};
        socket.send(frame);
      },
      test::patience, turn_checksums_off, test::sound_hello().capabilities | without_checksums);
  pair.check_harmless(Outcome::rejected);
}

TEST_CASE("the time that a pull took leaves out the delay before it") {
  test::VectorCluster cluster(2, 1024);
  cluster.start();
  auto& client = cluster.at(0).gossip().node().client();
  PullSpec spec;
  spec.timeout = test::patience;
  spec.delay = std::chrono::milliseconds(200);
  const auto begun = std::chrono::steady_clock::now();
  REQUIRE(client.begin(spec));
  const auto arrival = client.take(test::patience);
  const Duration whole = std::chrono::steady_clock::now() - begun;
  REQUIRE(arrival.has_value());
  CHECK(arrival->took > Duration::zero());
  CHECK(arrival->took <= whole - spec.delay);
}

}  // namespace dpwa
