#include "dpwa/net/members.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "dpwa/net/free_ports.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"
#include "test/support/raw_socket.h"

namespace dpwa {
namespace {

using test::RawSocket;
using test::ServedNode;
using wire::MessageType;

MemberClaim claim(const std::string& name, const std::string& address,
                  std::uint64_t incarnation = 5) {
  const auto port = static_cast<std::uint16_t>(7000 + name.back());
  return {name, {address}, port, incarnation, 0, MemberStatus::alive};
}

MemberExchange said(std::vector<MemberClaim> claims) {
  MemberExchange exchange;
  exchange.claims = std::move(claims);
  return exchange;
}

std::unique_ptr<Members> members(bool open = true) {
  MembershipOptions options;
  options.open = open;
  return std::make_unique<Members>(claim("w1", "127.0.0.1", 7),
                                   std::vector{claim("w2", "127.0.0.1", 0)}, options, 1);
}

// Node w1, which anybody may join.
struct OpenNode {
  ServedNode node{16, {}, {}, true, nullptr, members()};
  Members& of_node() { return *node.local().members; }
};

wire::Hello hello(const std::string& name,
                  std::uint32_t capabilities = wire::all_codecs | wire::members_capability) {
  wire::Hello hello = test::sound_hello();
  hello.node = name;
  hello.incarnation = 5;
  hello.capabilities = capabilities;
  return hello;
}

// What the node answers to HELLO.
std::optional<test::RawFrame> greet(RawSocket& socket, const wire::Hello& hello) {
  if (!socket.send(wire::encode(hello, 1))) return std::nullopt;
  return socket.read_frame();
}

}  // namespace

TEST_CASE("a loopback address is believed of a sender on this host alone") {
  for (const std::string from : {"127.0.0.1", "::1"}) {
    auto exchange = said({claim("a", "127.0.0.1"), claim("b", "127.0.0.1")});
    keep_believable(exchange, from, 1000);
    REQUIRE(exchange.claims.size() == 2);
    CHECK(exchange.claims[0].addresses[0] == "127.0.0.1");
  }
  auto exchange = said({claim("a", "127.0.1.1"), claim("b", "127.0.0.1"), claim("c", "10.0.0.3"),
                        claim("d", "0.0.0.0"), claim("e", "1.2.3.4.5")});
  keep_believable(exchange, "10.0.0.9", 1000);
  REQUIRE(exchange.claims.size() == 2);
  CHECK(exchange.claims[0].addresses ==
        std::vector<std::string>{"10.0.0.9"});  // where it called from
  CHECK(exchange.claims[1].name == "c");
}

TEST_CASE("a process that others say began far in the future is not believed in") {
  constexpr std::uint64_t now = 1'000'000'000'000;
  constexpr std::uint64_t day = 86'400'000'000;
  auto exchange = said({claim("a", "10.0.0.1", now + 2 * day), claim("b", "10.0.0.2", now + day),
                        claim("c", "10.0.0.3", now + day + 1)});
  keep_believable(exchange, "10.0.0.1", now);
  REQUIRE(exchange.claims.size() == 2);
  CHECK(exchange.claims[1].name == "b");
}

TEST_CASE("a sender that is reached on its link alone is dialled where it called from") {
  auto exchange = said({claim("a", "fe80::2"), claim("b", "fe80::3")});
  exchange.claims[0].addresses.push_back("::1");
  keep_believable(exchange, "fe80::2%lo", 1000);
  CHECK(exchange.claims[0].addresses == std::vector<std::string>{"fe80::2%lo"});
  CHECK(exchange.claims[1].addresses == std::vector<std::string>{"fe80::3"});
}

TEST_CASE("a message to send can always be encoded, and never contains a scope") {
  auto exchange = said({claim("w1", "fe80::1%lo"), claim("a", "fe80::2%enp0s31f6"),
                        claim("b", "host.example"), claim("c", ""), claim("d", "10.0.0.4"),
                        claim("e", "10.0.0.5"), claim(std::string(256, 'f'), "10.0.0.6")});
  exchange.claims[3].addresses.clear();
  exchange.claims[5].port = 0;
  keep_tellable(exchange);
  REQUIRE(exchange.claims.size() == 3);
  CHECK(exchange.claims[0].addresses[0] == "fe80::1");
  CHECK(exchange.claims[1].addresses[0] == "fe80::2");
  CHECK(exchange.claims[2].name == "d");
  CHECK_NOTHROW(wire::encode(exchange, 1));

  exchange = said({claim("w1", "host.example")});
  keep_tellable(exchange);
  CHECK(exchange.claims[0].addresses == std::vector<std::string>{"::"});
  CHECK_NOTHROW(wire::encode(exchange, 1));
}

TEST_CASE("a node whose file lists link-local addresses dials them and tells them without scope") {
  Members members(claim("w1", "fe80::1%lo", 7), {claim("w2", "fe80::2%lo", 0)}, {}, 1);
  members.heard("w2", 5);
  // A stranger whom this node met over the link.
  members.merge("w9", 5, said({claim("w9", "127.0.0.1")}), "fe80::9%lo");
  members.reached("w9", 5);
  CHECK(members.find("w2")->addresses == std::vector<std::string>{"fe80::2%lo"});
  CHECK(members.find("w9")->addresses == std::vector<std::string>{"fe80::9%lo"});
  for (const auto& exchange : {members.request("w3"), members.answer("w3", {})}) {
    CHECK_NOTHROW(wire::encode(exchange, 1));
    CHECK(exchange.claims.size() >= 3);
    for (const MemberClaim& told : exchange.claims)
      CHECK(told.addresses[0].find('%') == std::string::npos);
  }
}

TEST_CASE_FIXTURE(OpenNode,
                  "a node that nobody knew is let in and held, once it says where it is") {
  RawSocket socket(node.port());
  const auto welcome = greet(socket, hello("w9"));
  REQUIRE(welcome);
  REQUIRE(welcome->header.type == MessageType::welcome);
  CHECK((wire::decode_welcome(welcome->body)->capabilities & wire::members_capability) != 0);
  CHECK_FALSE(of_node().find("w9"));

  REQUIRE(socket.send(wire::encode(said({claim("w9", "127.0.0.1")}), 2)));
  const auto answer = socket.read_frame();
  REQUIRE(answer);
  REQUIRE(answer->header.type == MessageType::members);
  CHECK(answer->header.request_id == 2);
  const auto told = wire::decode_members(answer->body);
  REQUIRE(told.has_value());
  CHECK(told->claims[0].name == "w1");
  const auto held = of_node().find("w9");
  REQUIRE(held);
  CHECK(held->port == 7000 + '9');
  CHECK(held->status == MemberStatus::alive);
}

TEST_CASE_FIXTURE(OpenNode, "news and a pull in one write are answered in that order") {
  RawSocket socket(node.port());
  REQUIRE(greet(socket, hello("w2")));
  auto bytes = wire::encode(said({claim("w2", "127.0.0.1")}), 2);
  wire::Pull pull;
  pull.deadline_ms = 10000;
  pull.chunk_bytes = wire::min_chunk_bytes;
  const auto request = wire::encode(pull, 3);
  bytes.insert(bytes.end(), request.begin(), request.end());
  REQUIRE(socket.send(bytes));
  const auto first = socket.read_frame();
  const auto second = socket.read_frame();
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->header.type == MessageType::members);
  CHECK(second->header.type == MessageType::snapshot);
  CHECK(second->header.request_id == 3);
}

TEST_CASE_FIXTURE(
    OpenNode, "MEMBERS that is not of its sender ends the connection, and nothing of it is held") {
  RawSocket socket(node.port());
  REQUIRE(greet(socket, hello("w9")));
  MemberExchange exchange;
  SUBCASE("of another") {
    exchange = said({claim("w8", "127.0.0.1")});
  }
  SUBCASE("of another process") {
    exchange = said({claim("w9", "127.0.0.1", 6)});
  }
  REQUIRE(socket.send(wire::encode(exchange, 2)));
  CHECK(socket.ended_by_other_side());
  CHECK_FALSE(of_node().find("w8"));
  CHECK_FALSE(of_node().find("w9"));
  CHECK(test::eventually([&] { return node.local().traffic.protocol_errors == 1; }));
}

TEST_CASE_FIXTURE(OpenNode, "an observer has no members to tell of") {
  RawSocket socket(node.port());
  wire::Hello observer = hello("");
  observer.role = wire::Role::observer;
  observer.fingerprint = {};
  REQUIRE(greet(socket, observer));
  REQUIRE(socket.send(wire::encode(said({claim("w9", "127.0.0.1")}), 2)));
  CHECK(socket.ended_by_other_side());
}

TEST_CASE("an unknown node is refused where joining is closed, or when it states no address") {
  for (const bool open : {true, false}) {
    ServedNode node(16, {}, {}, true, nullptr, members(open));
    RawSocket socket(node.port());
    const auto answer = greet(socket, open ? hello("w9", wire::all_codecs) : hello("w9"));
    REQUIRE(answer);
    REQUIRE(answer->header.type == MessageType::reject);
    const auto reject = wire::decode_reject(answer->body);
    CHECK(reject->code == wire::RejectCode::unknown_node);
    const auto* const why = open ? "'w9' is unknown to 'w1', and does not say where"
                                 : "'w9' is not in the cluster file of 'w1'";
    CHECK(reject->reason.find(why) != std::string::npos);
  }
}

TEST_CASE_FIXTURE(OpenNode,
                  "another process under a name is a restart where only a stranger answers") {
  ServedNode first(16, {}, {}, true, nullptr, members());
  of_node().merge("w9", 3, said({{"w9", {"127.0.0.1"}, first.port(), 3}}), "127.0.0.1");
  RawSocket another(node.port());
  const auto answer = greet(another, hello("w9"));
  REQUIRE(answer);
  // Who answers there calls itself w1, so nobody answers to w9: a restart.
  CHECK(answer->header.type == MessageType::welcome);
  CHECK(of_node().find("w9")->incarnation == 5);
}

}  // namespace dpwa
