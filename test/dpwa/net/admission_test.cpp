#include <doctest/doctest.h>

#include <chrono>
#include <list>
#include <set>
#include <string>

#include "dpwa/net/admission.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

LocalNode local_node() {
  return {"digits", "w1", 7, {"w2", "w3"}, test::vector_manifest(8), 4096, [](std::size_t bytes) {
            return AlignedBuffer(bytes);
          }};
}

wire::Hello hello(std::string cluster, std::string node, wire::Role role = wire::Role::node) {
  wire::Hello hello;
  hello.role = role;
  hello.cluster = std::move(cluster);
  hello.node = std::move(node);
  return hello;
}

// What a node answers to this pull at this moment; none: it grants it.
std::optional<wire::MessageType> refusal(const LocalNode& local, const wire::Pull& pull,
                                         TimePoint now) {
  const auto verdict = examine_pull(pull, local, /*busy=*/false, now);
  const auto* refused = std::get_if<PullRefusal>(&verdict);
  return refused ? std::optional(refused->type) : std::nullopt;
}

}  // namespace

TEST_CASE("a node and an observer of the cluster are admitted, one of another cluster is not") {
  const LocalNode local = local_node();
  CHECK_FALSE(examine_hello(hello("digits", "w3"), local));
  CHECK_FALSE(examine_hello(hello("digits", "", wire::Role::observer), local));
  const auto reject = examine_hello(hello("letters", "", wire::Role::observer), local);
  REQUIRE(reject);
  CHECK(reject->code == wire::RejectCode::cluster);
}

TEST_CASE("a caller is rejected for the first of cluster, own name and unknown name") {
  const LocalNode local = local_node();
  const auto code_and_reason = [&](const wire::Hello& caller) {
    const auto reject = examine_hello(caller, local);
    REQUIRE(reject);
    return std::pair(reject->code, reject->reason);
  };
  CHECK(code_and_reason(hello("letters", "w1")) ==
        std::pair(wire::RejectCode::cluster,
                  std::string("node 'w1' belongs to cluster 'digits', not 'letters'")));
  CHECK(code_and_reason(hello("letters", "w9")).first == wire::RejectCode::cluster);
  CHECK(
      code_and_reason(hello("digits", "w1")) ==
      std::pair(wire::RejectCode::own_name,
                std::string(
                    "two nodes are named 'w1'; give each a name of its own (--name, DPWA_NAME)")));
  CHECK(code_and_reason(hello("digits", "w9")) ==
        std::pair(wire::RejectCode::unknown_node,
                  std::string("node 'w9' is not in the cluster file of 'w1'")));
}

TEST_CASE("a snapshot that is no longer fresh is given to no pull that states the ledger") {
  LocalNode local = local_node();
  Progress progress;
  progress.version = 3;
  local.store.publish(*local.store.begin(), progress);
  local.state = wire::NodeState::ready;
  const TimePoint until{std::chrono::seconds(5)};
  const TimePoint after = until + std::chrono::nanoseconds(1);
  wire::Pull states, known, silent;
  states.taken = known.taken = 0;
  known.known_version = 3;
  CHECK_FALSE(refusal(local, states, after));  // a node that knows no usual step
  local.fresh_until = until;
  CHECK_FALSE(refusal(local, states, until));
  CHECK(refusal(local, states, after) == wire::MessageType::not_fresh);
  CHECK(refusal(local, known, after) == wire::MessageType::not_modified);
  CHECK_FALSE(refusal(local, silent, after));
}

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

TEST_CASE("a caller that says that it has the final snapshot is noted") {
  ServedNode node;
  Progress progress;
  progress.version = 3;
  progress.final = true;
  node.local().store.publish(*node.local().store.begin(), progress);
  node.local().state = wire::NodeState::finished;
  RawSocket peer(node.port());
  REQUIRE(test::introduce(peer));
  wire::Pull known = pull();
  known.known_version = 3;
  const auto answer = [&] {
    REQUIRE(peer.send(wire::encode(known, 2)));
    const auto frame = peer.read_frame();
    REQUIRE(frame);
    return frame->header.type;
  };
  CHECK(answer() == wire::MessageType::not_modified);
  CHECK(node.local().served.take_final().empty());
  known.for_final_average = true;
  CHECK(answer() == wire::MessageType::not_modified);
  CHECK(node.local().served.take_final() == std::set<std::string>{"w2"});
}

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
  ServerOptions options;
  options.handshake_timeout = std::chrono::hours(1);  // which this test would take
  ServedNode node(16, options);
  RawSocket silent(node.port());
  RawSocket half(node.port());
  const auto hello = wire::encode(test::sound_hello(), 1);
  REQUIRE(half.send(std::span(hello).first(20)));
  RawSocket idle(node.port());
  REQUIRE(test::introduce(idle));
  node.stop();
  CHECK(silent.ended_by_other_side());
  CHECK(half.ended_by_other_side());
  CHECK(idle.ended_by_other_side());
}

}  // namespace dpwa
