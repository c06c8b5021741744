#include <doctest/doctest.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <optional>

#include "dpwa/net/coroutine.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/one_peer.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"

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
  const auto from = std::chrono::steady_clock::now();
  pair.check_harmless(Outcome::timed_out);
  CHECK(std::chrono::steady_clock::now() - from >= 150ms);
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

namespace dpwa::net {
namespace {

// Times that have passed: an event loop that is out of work has run every timer.
TimePoint past(int seconds) {
  return std::chrono::steady_clock::now() - std::chrono::seconds(seconds);
}

}  // namespace

TEST_CASE("a deadline calls once when its time comes") {
  boost::asio::io_context io;
  int calls = 0;
  const Deadline deadline(io, past(1), [&] { ++calls; });
  CHECK_FALSE(deadline.expired());
  io.run();
  CHECK(calls == 1);
  CHECK(deadline.expired());
}

TEST_CASE("a deadline destroyed before its time never calls and leaves the loop no work") {
  boost::asio::io_context io;
  int calls = 0;
  {
    const Deadline deadline(io, std::chrono::steady_clock::now() + std::chrono::hours(1),
                            [&] { ++calls; });
  }
  io.run();
  CHECK(calls == 0);
}

TEST_CASE("a deadline destroyed after its timer fired, but before its call, never calls") {
  boost::asio::io_context io;
  int calls = 0;
  std::optional<Deadline> second;
  // Both timers have fired when the loop runs; the earlier one's call comes first.
  const Deadline first(io, past(2), [&] { second.reset(); });
  second.emplace(io, past(1), [&] { ++calls; });
  io.run();
  CHECK(first.expired());
  CHECK(calls == 0);
}

}  // namespace dpwa::net

namespace dpwa {
namespace {

using test::large_elements;
using test::pull_within;
using test::PullingNode;
using test::ServedNode;

RawSocket stalled_reader(ServedNode& node, std::chrono::milliseconds deadline) {
  return test::stalled_reader(node.port(), deadline);
}

}  // namespace

TEST_CASE("a reader that stalls delays neither other readers nor the publisher") {
  ServedNode node(large_elements);
  RawSocket stalled = stalled_reader(node, 10s);
  PullingNode honest({{"w1", {"127.0.0.1"}, node.port()}}, large_elements);
  for (int round = 2; round < 8; ++round) {
    const auto value = static_cast<float>(round);
    REQUIRE(test::eventually([&] { return node.publish(value); }));
    REQUIRE(honest.pull().outcome == Outcome::mixed);
    CHECK(honest.landed().front() == value);
    CHECK(honest.landed().back() == value);
  }
  // What the stalled reader asked for is still there, whole: it was never overwritten.
  CHECK(node.free_buffers() <= 1);
}

TEST_CASE("a stalled reply ends when the time that its caller stated is up, and frees the buffer") {
  ServedNode node(large_elements);
  RawSocket stalled = stalled_reader(node, 300ms);
  REQUIRE(test::eventually([&] { return node.publish(2.0F); }));
  CHECK(test::eventually([&] { return node.free_buffers() == 2; }));
  CHECK(stalled.ended_by_other_side());
}

TEST_CASE("no caller may keep a reply for longer than the server allows") {
  ServerOptions options;
  options.max_reply_time = 100ms;
  ServedNode node(large_elements, options);
  RawSocket stalled = stalled_reader(node, std::chrono::hours(24));
  REQUIRE(test::eventually([&] { return node.publish(2.0F); }));
  CHECK(test::eventually([&] { return node.free_buffers() == 2; }));
  CHECK(stalled.ended_by_other_side());
}

TEST_CASE("more replies at once than allowed are answered BUSY, and served after the others") {
  ServerOptions options;
  options.max_replies = 1;
  ServedNode node(large_elements, options);
  RawSocket next(node.port());
  REQUIRE(test::introduce(next, large_elements));
  {
    RawSocket stalled = stalled_reader(node, 10s);
    REQUIRE(next.send(wire::encode(pull_within(10s), 7)));
    const auto frame = next.read_frame();
    REQUIRE(frame);
    CHECK(frame->header.type == wire::MessageType::busy);
    CHECK(frame->header.request_id == 7);
  }
  const bool served = test::eventually([&] {
    if (!next.send(wire::encode(pull_within(10s), 8))) return false;
    const auto frame = next.read_frame();
    return frame && frame->header.type == wire::MessageType::snapshot;
  });
  CHECK(served);
}

TEST_CASE("a server that stops gives a reply in flight a moment and then closes it") {
  ServerOptions options;
  options.drain_time = 50ms;
  options.max_reply_time = std::chrono::hours(1);  // which this test would take
  ServedNode node(large_elements, options);
  RawSocket stalled = stalled_reader(node, std::chrono::hours(1));
  node.stop();
  CHECK(stalled.ended_by_other_side());
}

}  // namespace dpwa
