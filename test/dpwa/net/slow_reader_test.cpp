#include <doctest/doctest.h>

#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::PullingNode;
using test::RawSocket;
using test::ServedNode;

constexpr std::size_t elements = 4 << 20;  // 16 MiB: more than the sockets' buffers take
constexpr int small_buffer = 4096;

wire::Pull pull_within(std::chrono::milliseconds deadline) {
  wire::Pull pull;
  pull.deadline_ms = static_cast<std::uint32_t>(deadline.count());
  return pull;
}

// A reader that asks for a snapshot and, once the reply has begun, reads no more.
RawSocket stalled_reader(ServedNode& node, std::chrono::milliseconds deadline) {
  RawSocket reader(node.port(), small_buffer);
  REQUIRE(test::introduce(reader, elements));
  REQUIRE(reader.send(wire::encode(pull_within(deadline), 2)));
  REQUIRE(reader.read(wire::header_bytes));
  return reader;
}

}  // namespace

TEST_CASE("a reader that stalls delays neither other readers nor the publisher") {
  ServedNode node(elements);
  RawSocket stalled = stalled_reader(node, 10s);
  PullingNode honest({{"w1", {"127.0.0.1"}, node.port()}}, elements);
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
  ServedNode node(elements);
  RawSocket stalled = stalled_reader(node, 300ms);
  REQUIRE(test::eventually([&] { return node.publish(2.0F); }));
  CHECK(test::eventually([&] { return node.free_buffers() == 2; }));
  CHECK(stalled.ended_by_other_side());
}

TEST_CASE("no caller may keep a reply for longer than the server allows") {
  ServerOptions options;
  options.max_reply_time = 100ms;
  ServedNode node(elements, options);
  RawSocket stalled = stalled_reader(node, std::chrono::hours(24));
  REQUIRE(test::eventually([&] { return node.publish(2.0F); }));
  CHECK(test::eventually([&] { return node.free_buffers() == 2; }));
  CHECK(stalled.ended_by_other_side());
}

TEST_CASE("a peer that held a snapshot in vain is told BUSY for a while, others are served") {
  ServedNode node(elements);
  {
    RawSocket stalled = stalled_reader(node, 1s);
    REQUIRE(test::eventually([&] { return node.publish(2.0F); }));
    REQUIRE(test::eventually([&] { return node.free_buffers() == 2; }));
  }
  RawSocket again(node.port());
  REQUIRE(test::introduce(again, elements));
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
  ServedNode node(elements, options);
  RawSocket next(node.port());
  REQUIRE(test::introduce(next, elements));
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
  ServedNode node(elements, options);
  RawSocket stalled = stalled_reader(node, 10s);
  const auto from = std::chrono::steady_clock::now();
  node.stop();
  CHECK(std::chrono::steady_clock::now() - from < 5s);
  CHECK(stalled.ended_by_other_side());
}

}  // namespace dpwa
