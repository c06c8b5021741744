#include <doctest/doctest.h>

#include <list>
#include <memory>

#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"

// An attacker under the name and the incarnation of an honest node, from another address.

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::large_elements;
using test::PullingNode;
using test::RawSocket;
using test::ServedNode;

constexpr const char* elsewhere = "127.0.0.2";

// w2 listens at 127.0.0.1, and calls from there.
std::unique_ptr<Members> members() {
  const auto claim = [](const std::string& name, std::uint64_t incarnation) {
    return MemberClaim{name, {"127.0.0.1"}, 7000, incarnation, 0, MemberStatus::alive};
  };
  return std::make_unique<Members>(claim("w1", 7), std::vector{claim("w2", 0)}, MembershipOptions{},
                                   1);
}

struct Target {
  explicit Target(ServerOptions options = {})
      : node(large_elements, std::move(options), {}, true, nullptr, members()),
        honest({{"w1", {"127.0.0.1"}, node.port()}}, large_elements, 1, /*same_host=*/false) {}

  void hold_as_w2() { attacker.push_back(test::stalled_reader(node.port(), 10s, elsewhere)); }

  ServedNode node;
  PullingNode honest;
  std::list<RawSocket> attacker;
};

}  // namespace

TEST_CASE("two held replies under an honest node's name leave that node its own two") {
  Target target;
  REQUIRE(target.honest.pull().outcome == Outcome::mixed);
  target.hold_as_w2();
  target.hold_as_w2();
  for (int round = 2; round < 5; ++round) {
    REQUIRE(test::eventually([&] { return target.node.publish(static_cast<float>(round)); }));
    CHECK(target.honest.pull().outcome == Outcome::mixed);
  }
}

TEST_CASE("snapshots held in vain under an honest node's name do not make that node wait") {
  ServerOptions options;
  options.max_reply_time = 1s;
  Target target(options);
  target.hold_as_w2();
  target.hold_as_w2();
  REQUIRE(test::eventually([&] { return target.node.publish(2.0F); }));
  REQUIRE(test::eventually([&] { return target.node.free_buffers() == 2; }));
  // The caller itself is told to wait, under another name as well.
  for (const std::string name : {"w2", "w7"}) {
    CAPTURE(name);
    RawSocket again(target.node.port(), 0, elsewhere);
    wire::Hello hello = test::sound_hello(large_elements);
    hello.node = name;
    hello.capabilities |= wire::members_capability;
    REQUIRE(again.send(wire::encode(hello, 1)));
    const auto welcome = again.read_frame();
    REQUIRE(welcome);
    REQUIRE(welcome->header.type == wire::MessageType::welcome);
    REQUIRE(again.send(wire::encode(test::pull_within(10s), 2)));
    const auto frame = again.read_frame();
    REQUIRE(frame);
    CHECK(frame->header.type == wire::MessageType::busy);
  }
  target.node.allow_replies(10s);
  CHECK(target.honest.pull().outcome == Outcome::mixed);
}

TEST_CASE("connections under an honest node's name close none of that node's") {
  ServerOptions options;
  options.connections.per_peer = 1;
  options.connections.in_all = 4;
  Target target(options);
  RawSocket honest(target.node.port());
  REQUIRE(test::introduce(honest, large_elements));
  for (int i = 0; i < 6; ++i) {
    target.attacker.emplace_back(target.node.port(), 0, elsewhere);
    REQUIRE(test::introduce(target.attacker.back(), large_elements));
  }
  // Nor do those of invented names, that fill the node.
  for (int i = 0; i < 6; ++i) {
    RawSocket& ghost = target.attacker.emplace_back(target.node.port(), 0, elsewhere);
    wire::Hello hello = test::sound_hello(large_elements);
    hello.node = "ghost" + std::to_string(i);
    hello.capabilities |= wire::members_capability;
    REQUIRE(ghost.send(wire::encode(hello, 1)));
    REQUIRE(ghost.read_frame());
  }
  REQUIRE(honest.send(wire::encode(test::pull_within(10s), 2)));
  const auto frame = honest.read_frame();
  REQUIRE(frame);
  CHECK(frame->header.type == wire::MessageType::snapshot);
}

TEST_CASE("a node of the file has left by its own word alone") {
  for (const char* from : {elsewhere, "127.0.0.1"}) {
    CAPTURE(from);
    Target target;
    RawSocket caller(target.node.port(), 0, from);
    wire::Hello hello = test::sound_hello(large_elements);
    hello.capabilities |= wire::members_capability;
    REQUIRE(caller.send(wire::encode(hello, 1)));
    REQUIRE(caller.read_frame());
    MemberExchange farewell;
    farewell.claims = {{"w2", {"127.0.0.1"}, 7000, hello.incarnation, 1, MemberStatus::left}};
    REQUIRE(caller.send(wire::encode(farewell, 2)));
    REQUIRE(caller.read_frame());
    const bool left = target.node.local().members->find("w2")->status == MemberStatus::left;
    CHECK(left == (from != elsewhere));
  }
}

}  // namespace dpwa
