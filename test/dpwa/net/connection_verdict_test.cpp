#include <doctest/doctest.h>

#include <boost/asio/error.hpp>
#include <vector>

#include "dpwa/net/connection_limits.h"
#include "dpwa/net/failure.h"
#include "dpwa/net/network.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using Phase = ConnectionFacts::Phase;
constexpr TimePoint start = TimePoint() + std::chrono::hours(1);

ConnectionLimits small_limits() {
  ConnectionLimits limits;
  limits.in_all = 8;
  limits.per_address = 4;
  limits.per_peer = 2;
  limits.handshakes = 3;
  return limits;
}

ConnectionFacts handshake(const std::string& address, Duration age) {
  return {address, "", Phase::handshake, start - age, false};
}

ConnectionFacts introduced(const std::string& address, const std::string& peer, Duration age,
                           Phase phase = Phase::idle, bool of_file = true) {
  return {address, peer, phase, start - age, of_file};
}

}  // namespace

TEST_CASE("below every bound a connection is taken, and nothing makes room") {
  const std::vector<ConnectionFacts> present{handshake("a", 1s), introduced("a", "w2", 5s)};
  const auto verdict = examine_connection(present, "a", small_limits());
  CHECK(verdict.admitted);
  CHECK_FALSE(verdict.closes);
  CHECK(verdict.reason.empty());
}

TEST_CASE("too many handshakes: the oldest of the address with most of them makes room") {
  const std::vector<ConnectionFacts> present{handshake("honest", 9s), handshake("flood", 1s),
                                             handshake("flood", 2s)};
  const auto verdict = examine_connection(present, "other", small_limits());
  CHECK(verdict.admitted);
  REQUIRE(verdict.closes);
  CHECK(*verdict.closes == 2);
  CHECK(verdict.reason == "more than 3 handshakes at once");
}

TEST_CASE("too many of one address: its own handshake makes room, never another's") {
  std::vector<ConnectionFacts> present{handshake("b", 9s), introduced("a", "w2", 5s),
                                       introduced("a", "w3", 5s), introduced("a", "w4", 5s),
                                       handshake("a", 1s)};
  auto verdict = examine_connection(present, "a", small_limits());
  CHECK(verdict.admitted);
  REQUIRE(verdict.closes);
  CHECK(*verdict.closes == 4);

  present.back() = introduced("a", "w5", 1s);
  verdict = examine_connection(present, "a", small_limits());
  CHECK_FALSE(verdict.admitted);
  CHECK(verdict.reason ==
        "more than 4 connections from one address (half of transport.max_connections)");
  CHECK(examine_connection(present, "c", small_limits()).admitted);

  present[2].of_file = false;
  verdict = examine_connection(present, "a", small_limits());
  CHECK(verdict.admitted);
  REQUIRE(verdict.closes);
  CHECK(*verdict.closes == 2);
}

TEST_CASE("too many handshakes of many addresses: the oldest makes room, whatever its address") {
  for (const std::size_t oldest : {0, 1, 2}) {
    std::vector<ConnectionFacts> present{handshake("a", 1s), handshake("b", 1s),
                                         handshake("c", 1s)};
    present[oldest].since = start - 2s;
    CHECK(examine_connection(present, "d", small_limits()).closes == oldest);
  }
}

TEST_CASE("a full node makes room from those that joined and are idle, the longest first") {
  std::vector<ConnectionFacts> present;
  for (int i = 0; i < 8; ++i)
    present.push_back(introduced("10.0.0.1", "w" + std::to_string(i), 60s));
  for (const std::size_t joined : {2, 4, 6}) present[joined].of_file = false;
  present[2].phase = Phase::replying;
  present[4].since = start - 5s;
  present[6].since = start - 7s;
  auto verdict = examine_connection(present, "10.0.2.2", small_limits());
  CHECK(verdict.admitted);
  REQUIRE(verdict.closes);
  CHECK(*verdict.closes == 6);
  for (const std::size_t joined : {4, 6}) present[joined].of_file = true;
  verdict = examine_connection(present, "10.0.2.2", small_limits());
  CHECK_FALSE(verdict.admitted);
  CHECK(verdict.reason == "more than 8 connections (transport.max_connections)");
}

TEST_CASE("a full node makes room from handshakes alone: the nodes of the file stay") {
  std::vector<ConnectionFacts> present;
  for (int i = 0; i < 7; ++i)
    present.push_back(introduced("10.0.0." + std::to_string(i), "w" + std::to_string(i), 60s));
  present.push_back(handshake("10.0.1.1", 1ms));
  auto verdict = examine_connection(present, "10.0.2.2", small_limits());
  CHECK(verdict.admitted);
  REQUIRE(verdict.closes);
  CHECK(*verdict.closes == 7);
  present.back() = introduced("10.0.1.1", "w9", 1ms);
  verdict = examine_connection(present, "10.0.2.2", small_limits());
  CHECK_FALSE(verdict.admitted);
  CHECK(verdict.reason == "more than 8 connections (transport.max_connections)");
}

TEST_CASE("a connection that is being closed counts no more") {
  std::vector<ConnectionFacts> present(4, introduced("a", "w2", 1s, Phase::closing));
  CHECK(examine_connection(present, "a", small_limits()).reason.empty());
  present.push_back(handshake("a", 0s));
  CHECK(examine_introduction(present, 4, "w2", small_limits()).reason.empty());
}

TEST_CASE("one more connection of a peer closes the one that was idle longest") {
  const std::vector<ConnectionFacts> present{introduced("a", "w2", 9s, Phase::replying),
                                             introduced("a", "w2", 5s), introduced("a", "w3", 60s),
                                             handshake("a", 0s)};
  const auto verdict = examine_introduction(present, 3, "w2", small_limits());
  CHECK(verdict.admitted);
  REQUIRE(verdict.closes);
  CHECK(*verdict.closes == 1);
  CHECK_FALSE(examine_introduction(present, 3, "w3", small_limits()).closes);
}

TEST_CASE("a peer that is being served on all its connections gets no more of them") {
  const std::vector<ConnectionFacts> present{introduced("a", "w2", 9s, Phase::replying),
                                             introduced("a", "w2", 5s, Phase::replying),
                                             handshake("a", 0s)};
  const auto verdict = examine_introduction(present, 2, "w2", small_limits());
  CHECK_FALSE(verdict.admitted);
  CHECK(verdict.reason == "more than 2 connections of one peer");
}

TEST_CASE("callers count by IPv4 address, and by the 64 bits of an IPv6 network") {
  CHECK(net::network_of("10.0.0.1") == "10.0.0.1");
  CHECK(net::network_of("::ffff:10.0.0.1") == "10.0.0.1");
  CHECK(net::network_of("2001:db8:1:2::1") == net::network_of("2001:db8:1:2:ffff::9"));
  CHECK(net::network_of("2001:db8:1:2::1") == "2001:db8:1:2::/64");
  CHECK(net::network_of("2001:db8:1:3::1") != net::network_of("2001:db8:1:2::1"));
}

TEST_CASE("loopback and link-local addresses count for themselves") {
  CHECK(net::network_of("::1") == "::1");
  CHECK(net::network_of("127.0.0.2") != net::network_of("127.0.0.1"));
  CHECK(net::network_of("fe80::1%lo") == "fe80::1%lo");
  CHECK(net::network_of("fe80::1%lo") != net::network_of("fe80::2%lo"));
}

TEST_CASE("a text that is not an address stays as it is") {
  CHECK(net::network_of("peer") == "peer");
}

TEST_CASE("an IPv4 address that came as an IPv6 one is shown as IPv4") {
  CHECK(net::text_of(boost::asio::ip::make_address("::ffff:127.0.0.1")) == "127.0.0.1");
  CHECK(net::text_of(boost::asio::ip::make_address("::1")) == "::1");
}

}  // namespace dpwa

namespace dpwa::net {
namespace {

using Kind = Failure::Kind;

Failure rejected(wire::RejectCode code) {
  return wire::Reject{code, "why"};
}

}  // namespace

TEST_CASE("system errors, decoding errors and rejects are failures of their kind") {
  const Failure closed = boost::system::error_code(boost::asio::error::eof);
  CHECK(closed.kind == Kind::ended);
  CHECK(closed.detail == "the connection was closed");
  const Failure corrupt = wire::WireError{wire::Fault::bad_checksum, "wrong"};
  CHECK(corrupt.kind == Kind::protocol);
  CHECK(corrupt.detail == "wrong");
  const Failure later = wire::WireError{wire::Fault::bad_version, "version 2"};
  CHECK(later.kind == Kind::version);
  CHECK(later.is_protocol());
  const Failure refused = rejected(wire::RejectCode::cluster);
  CHECK(refused.kind == Kind::rejected);
  CHECK(refused.reject == wire::RejectCode::cluster);
}

TEST_CASE("the rules hear of a failure what they act on") {
  CHECK(verdict_of({Kind::ended, ""}) == PeerFailure::unreachable);
  CHECK(verdict_of({Kind::timed_out, ""}) == PeerFailure::timed_out);
  CHECK(verdict_of({Kind::protocol, ""}) == PeerFailure::protocol);
  CHECK(verdict_of({Kind::version, ""}) == PeerFailure::protocol);
  CHECK(verdict_of({Kind::security, ""}) == PeerFailure::rejected);
  CHECK(verdict_of(rejected(wire::RejectCode::model)) == PeerFailure::rejected);
  CHECK(verdict_of({Kind::busy, ""}) == PeerFailure::busy);
}

TEST_CASE("failures of one kind share a log line, whatever their words, and others do not") {
  CHECK(log_key({Kind::protocol, "a"}) == log_key({Kind::version, "b"}));
  CHECK(log_key({Kind::protocol, "a"}) != log_key({Kind::ended, "a"}));
  CHECK(log_key(rejected(wire::RejectCode::own_name)) ==
        log_key(rejected(wire::RejectCode::unknown_node)));
  CHECK(log_key(rejected(wire::RejectCode::model)) != log_key(rejected(wire::RejectCode::cluster)));
  CHECK(log_key(rejected(wire::RejectCode::security)) != log_key({Kind::security, ""}));
}

}  // namespace dpwa::net
