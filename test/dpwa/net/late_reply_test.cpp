#include <doctest/doctest.h>
#include <sys/socket.h>

#include "test/dpwa/net/one_peer.h"

// What a node makes of a peer that declines, answers late or not at all, or breaks off.

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::FakePeer;
using test::OnePeer;
using test::payload_at;
using test::PullSeen;
using test::RawSocket;
using test::send_first;
using test::sound_reply;
using test::VectorNode;

}  // namespace

TEST_CASE("a peer that declines is no failure of the connection, which is used again") {
  auto type = wire::MessageType::busy;
  auto outcome = Outcome::busy;
  SUBCASE("BUSY") {}
  SUBCASE("NOT_READY") {
    type = wire::MessageType::not_ready;
    outcome = Outcome::not_ready;
  }
  SUBCASE("NOT_MODIFIED") {
    type = wire::MessageType::not_modified;
    outcome = Outcome::skipped;
  }
  SUBCASE("NOT_FRESH") {
    type = wire::MessageType::not_fresh;
    outcome = Outcome::skipped;
  }
  OnePeer pair([type](RawSocket& socket, const PullSeen& request) {
    socket.send(wire::encode_empty(type, request.request_id));
  });
  const int connections = pair.peer().connections();  // of the start
  pair.check_harmless(outcome);
  const auto declined = [&] {
    const StepReport report = pair.step();
    return report.outcome == outcome && report.peer == "w2";
  };
  CHECK(test::eventually(declined));  // after its brief back-off
  CHECK(pair.peer().connections() == connections);
}

TEST_CASE("the deadline ends a pull from a peer that does not answer in time") {
  OnePeer::Reply reply;
  SUBCASE("silence") {
    reply = [](RawSocket& socket, const PullSeen&) { socket.ended_by_other_side(); };
  }
  SUBCASE("a reply that stops half way") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      send_first(socket, request, payload_at(1) + 100);
      socket.ended_by_other_side();
    };
  }
  SUBCASE("a byte every ten milliseconds") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      const auto frame = sound_reply(request);
      for (std::size_t at = 0; at < frame.size(); ++at) {
        if (!socket.send(std::span(frame).subspan(at, 1)) || socket.stirs_within(10ms)) return;
      }
    };
  }
  OnePeer pair(reply, 150ms);
  const StepReport report = pair.check_harmless(Outcome::timed_out);
  CHECK(report.waited >= 100ms);
}

TEST_CASE("a peer that takes the connection and never says a word ends with the deadline too") {
  FakePeer silent([](RawSocket& connection) { connection.ended_by_other_side(); });
  VectorNode node(test::one_peer_config(silent.port(), 150ms), OnePeer::elements, OnePeer::initial);
  node.gossip().start();
  node.gossip().update_send([] { return 1.0; });
  CHECK(to_string(node.gossip().update_wait().outcome) == "timed_out");
  CHECK(node.values()[0] == 1.5F);
}

TEST_CASE("a peer that breaks the connection is unreachable and leaves the model alone") {
  SUBCASE("at once") {
    OnePeer pair([](RawSocket& socket, const PullSeen&) { ::shutdown(socket.descriptor(), 2); });
    pair.check_harmless(Outcome::unreachable);
  }
  SUBCASE("in the first chunk") {
    OnePeer pair([](RawSocket& socket, const PullSeen& request) {
      send_first(socket, request, payload_at(0) + 10);
      ::shutdown(socket.descriptor(), 2);
    });
    pair.check_harmless(Outcome::unreachable);
  }
  SUBCASE("in the last chunk") {
    OnePeer pair([](RawSocket& socket, const PullSeen& request) {
      send_first(socket, request, payload_at(2) + 10);
      ::shutdown(socket.descriptor(), 2);
    });
    const StepReport report = pair.check_harmless(Outcome::unreachable);
    CHECK(report.bytes == 2 * OnePeer::chunk_bytes);
  }
}

}  // namespace dpwa
