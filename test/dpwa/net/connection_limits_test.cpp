#include <doctest/doctest.h>

#include <list>

#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::RawSocket;
using test::ServedNode;

wire::Pull pull() {
  wire::Pull pull;
  pull.deadline_ms = 10000;
  return pull;
}

}  // namespace

TEST_CASE("connections above the limit are closed at once, those below it go on") {
  ServerOptions options;
  options.connections.in_all = 3;
  options.handshake_timeout = std::chrono::hours(1);
  ServedNode node(16, options);
  std::list<RawSocket> welcome;
  for (int i = 0; i < 3; ++i) {
    welcome.emplace_back(node.port());
    REQUIRE(test::introduce(welcome.back()));
  }
  for (int i = 0; i < 20; ++i) {
    RawSocket excess(node.port());
    REQUIRE(excess.ended_by_other_side());
  }
  CHECK(node.local().traffic.connections_refused == 20);
  for (RawSocket& socket : welcome) {
    REQUIRE(socket.send(wire::encode(pull(), 2)));
    const auto frame = socket.read_frame();
    REQUIRE(frame);
    CHECK(frame->header.type == wire::MessageType::snapshot);
  }
  welcome.clear();
  CHECK(node.serves_an_honest_peer());
}

TEST_CASE(
    "a flood of silent connections keeps honest peers out only until its handshakes are due") {
  ServerOptions options;
  options.connections.in_all = 8;
  options.handshake_timeout = 50ms;
  ServedNode node(16, options);
  std::list<RawSocket> flood;
  for (int i = 0; i < 100; ++i) flood.emplace_back(node.port());
  CHECK(node.serves_an_honest_peer());
  for (RawSocket& socket : flood) CHECK(socket.ended_by_other_side());
}

TEST_CASE("a silent flood displaces itself while an honest peer gets through") {
  ServerOptions options;
  options.connections.handshakes = 8;
  options.handshake_timeout = std::chrono::hours(1);
  ServedNode node(16, options);
  std::list<RawSocket> flood;
  for (int i = 0; i < 100; ++i) {
    flood.emplace_back(node.port());
    if (i % 10 == 0) CHECK(node.serves_an_honest_peer());
  }
  CHECK(node.local().traffic.connections_refused >= 80);
}

TEST_CASE("a caller that leaves without a word leaves nothing behind, long before its time is up") {
  ServerOptions options;
  options.handshake_timeout = std::chrono::hours(1);
  options.connections.in_all = 10;
  options.connections.handshakes = 10;
  ServedNode node(16, options);
  for (int i = 0; i < 10; ++i) RawSocket silent(node.port());
  CHECK(test::eventually([&] { return node.local().traffic.connections_refused == 10; }));
}

TEST_CASE("a peer that connects again and again keeps its latest connections") {
  ServerOptions options;
  options.connections.per_peer = 2;
  ServedNode node(16, options);
  std::list<RawSocket> sockets;
  for (int i = 0; i < 5; ++i) {
    sockets.emplace_back(node.port());
    REQUIRE(test::introduce(sockets.back()));
  }
  for (int i = 0; i < 3; ++i) {
    CHECK(sockets.front().ended_by_other_side());
    sockets.pop_front();
  }
  for (RawSocket& socket : sockets) {
    REQUIRE(socket.send(wire::encode(pull(), 2)));
    CHECK(socket.read_frame());
  }
}

TEST_CASE("requests beyond the rate wait, and all are answered") {
  ServerOptions options;
  options.max_requests_per_second = 20;
  ServedNode node(16, options);
  RawSocket hasty(node.port());
  REQUIRE(test::introduce(hasty));
  const auto from = std::chrono::steady_clock::now();
  for (int i = 0; i < 25; ++i) {
    REQUIRE(hasty.send(wire::encode(pull(), 2)));
    REQUIRE(hasty.read_frame());
  }
  CHECK(std::chrono::steady_clock::now() - from >= 200ms);  // five of them at 20 a second
  CHECK(node.serves_an_honest_peer());
}

TEST_CASE("a server stops at once, whatever its connections are up to") {
  ServedNode node;
  RawSocket silent(node.port());
  RawSocket half(node.port());
  const auto hello = wire::encode(test::sound_hello(), 1);
  REQUIRE(half.send(std::span(hello).first(20)));
  RawSocket idle(node.port());
  REQUIRE(test::introduce(idle));
  const auto from = std::chrono::steady_clock::now();
  node.stop();
  CHECK(std::chrono::steady_clock::now() - from < 4s);  // a handshake alone may take 5 s
  CHECK(silent.ended_by_other_side());
  CHECK(half.ended_by_other_side());
  CHECK(idle.ended_by_other_side());
}

}  // namespace dpwa
