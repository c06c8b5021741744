#include <doctest/doctest.h>

#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::large_elements;
using test::pull_within;
using test::PullingNode;
using test::RawSocket;
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

TEST_CASE("a running server takes over another bound for its replies") {
  ServerOptions options;
  options.max_reply_time = std::chrono::hours(24);
  ServedNode node(large_elements, options);
  node.allow_replies(100ms);
  RawSocket stalled = stalled_reader(node, std::chrono::hours(24));
  REQUIRE(test::eventually([&] { return node.publish(2.0F); }));
  CHECK(test::eventually([&] { return node.free_buffers() == 2; }));
}

TEST_CASE("a peer that held a snapshot in vain is told BUSY for a while, others are served") {
  ServedNode node(large_elements);
  {
    RawSocket stalled = stalled_reader(node, 1s);
    REQUIRE(test::eventually([&] { return node.publish(2.0F); }));
    REQUIRE(test::eventually([&] { return node.free_buffers() == 2; }));
  }
  RawSocket again(node.port());
  REQUIRE(test::introduce(again, large_elements));
  REQUIRE(again.send(wire::encode(pull_within(10s), 3)));
  const auto frame = again.read_frame();
  REQUIRE(frame);
  CHECK(frame->header.type == wire::MessageType::busy);
  const bool forgiven = test::eventually([&] {
    if (!again.send(wire::encode(pull_within(10s), 4))) return false;
    const auto reply = again.read_frame();
    return reply && reply->header.type == wire::MessageType::snapshot;
  });
  CHECK(forgiven);
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
  ServedNode node(large_elements, options);
  RawSocket stalled = stalled_reader(node, 10s);
  const auto from = std::chrono::steady_clock::now();
  node.stop();
  CHECK(std::chrono::steady_clock::now() - from < 5s);
  CHECK(stalled.ended_by_other_side());
}

}  // namespace dpwa
