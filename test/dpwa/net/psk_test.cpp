#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "dpwa/net/status_query.h"
#include "test/dpwa/net/fake_peer.h"
#include "test/dpwa/net/secure_nodes.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"
#include "test/support/raw_socket.h"

// Nodes with a cluster key, on real sockets.

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::ClusterKey;
using test::greeting_of;
using test::RawSocket;
using test::secure_caller;
using test::secure_node;
using test::TamperingProxy;

constexpr std::size_t keyed_elements = 400'000;  // several batches of records

bool holds(std::span<const float> values, float value) {
  return std::ranges::all_of(values, [value](float one) { return one == value; });
}

std::string pulled(std::uint16_t port, std::shared_ptr<Security> security) {
  const auto caller = secure_caller(port, std::move(security));
  return std::string(to_string(caller->pull().outcome));
}

}  // namespace

TEST_CASE("nodes with the same key pull from each other again and again") {
  const ClusterKey key;
  const auto node = secure_node(key.open(), keyed_elements);
  const auto caller = secure_caller(node->port(), key.open(), keyed_elements);
  for (int pull = 1; pull <= 5; ++pull) {
    node->publish(static_cast<float>(pull));
    REQUIRE(caller->pull().outcome == Outcome::mixed);
    CHECK(holds(caller->landed(), static_cast<float>(pull)));
  }
  CHECK(node->local().traffic.connections_accepted == 1);
  CHECK(node->local().traffic.security_failures == 0);
  CHECK(caller->local().traffic.security_failures == 0);
}

TEST_CASE("with the key of the cluster a node is itself at an address that is not in the file") {
  const ClusterKey key;
  const MemberClaim w1{"w1", {"127.0.0.1"}, 7000, 7, 0, MemberStatus::alive};
  const MemberClaim w2{"w2", {"127.0.0.9"}, 7000, 3, 0, MemberStatus::alive};
  for (const bool has_key : {true, false}) {
    test::ServedNode node(16, {}, {}, true, has_key ? key.open() : nullptr,
                          std::make_unique<Members>(w1, std::vector{w2}, MembershipOptions{}, 1));
    Progress final_one;
    final_one.version = 2;
    final_one.lineage = 5;
    final_one.final = true;
    node.local().store.publish(*node.local().store.begin(), final_one);
    const auto caller = secure_caller(node.port(), has_key ? key.open() : nullptr);
    const RoundSpec round = round_with(PeerId{0}, take_final, 60s);
    REQUIRE(caller->pull({round, std::nullopt, LandingMode::values}).outcome == Outcome::mixed);
    const auto served = [&] { return node.local().served.take_final().contains("w2"); };
    CHECK((has_key ? test::eventually(served) : served()) == has_key);
  }
}

TEST_CASE("a node that cannot show the key is refused at once, with the reason, on both sides") {
  const ClusterKey key;
  const ClusterKey other;
  std::shared_ptr<Security> called = key.open();
  std::shared_ptr<Security> calls = key.open();
  std::string reason;
  SUBCASE("another key") {
    calls = other.open();
    reason = "has another cluster key than this process (security.key_file)";
  }
  SUBCASE("no TLS at the caller") {
    calls = nullptr;
    reason = "the called node speaks TLS only (security.mode)";
  }
  SUBCASE("no TLS at the called") {
    called = nullptr;
    reason = "speaks no TLS 1.3 (is its security mode insecure?)";
  }
  const bool caller_knows = calls != nullptr;
  const auto node = secure_node(called);
  const auto caller = secure_caller(node->port(), calls);
  CHECK(greeting_of(*caller) == reason);
  CHECK(caller->pull().outcome == Outcome::rejected);
  CHECK(test::eventually([&] { return node->local().traffic.connections_refused == 2; }));
  CHECK(test::eventually([&] { return node->local().traffic.security_failures == 2; }));
  CHECK(node->local().traffic.snapshots_served == 0);
  if (caller_knows) CHECK(caller->local().traffic.security_failures == 2);
  // No storm: the peer waits for the longest back-off before the next try.
  CHECK(caller->pull().outcome == Outcome::rejected);  // as the last try was
  CHECK(node->local().traffic.connections_refused == 2);
}

TEST_CASE("an observer sees a node with its key, and why one without it does not answer") {
  const ClusterKey key;
  const ClusterKey other;
  const auto node = secure_node(key.open());
  const std::vector<PeerAddress> nodes{{"w1", {"127.0.0.1"}, node->port()}};
  const auto ask = [&](const std::shared_ptr<Security>& security) {
    return query_status("test", nodes, test::patience, security.get()).front();
  };
  CHECK(ask(key.open()).json == "{}");
  CHECK(ask(other.open()).error == "has another cluster key than this process (security.key_file)");
  CHECK(ask(nullptr).error == "the called node speaks TLS only (security.mode)");
}

TEST_CASE("a handshake that trickles is cut at the deadline, and not before") {
  const ClusterKey key;
  const auto node = secure_node(key.open(), 16, 200ms);
  const auto patient = secure_node(key.open(), 16, std::chrono::hours(1));
  RawSocket slow(node->port());
  RawSocket in_time(patient->port());
  const auto send = [&](std::string_view bytes) { return slow.send(bytes) && in_time.send(bytes); };
  // The start of a record that announces a ClientHello of 512 bytes.
  REQUIRE(send(std::string_view("\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9)));
  CHECK(test::eventually([&] {
    if (slow.stirs_within(10ms)) return true;
    send(std::string_view("\x03", 1));
    return false;
  }));
  CHECK(slow.ended_by_other_side());
  CHECK_FALSE(in_time.stirs_within(0ms));
  CHECK(test::eventually([&] { return pulled(node->port(), key.open()) == "mixed"; }));
}

TEST_CASE("bytes that are no TLS handshake end the connection and are counted") {
  const ClusterKey key;
  const auto node = secure_node(key.open());
  RawSocket hostile(node->port());
  std::string sent;
  SUBCASE("a record of noise") {
    sent.assign("\x16\x03\x01\x00\x40", 5);
    for (int i = 0; i < 64; ++i) sent.push_back(static_cast<char>(i * 37 + 11));
  }
  SUBCASE("a record of an absurd length") {
    sent.assign("\x16\x03\x01\xff\xff", 5);
  }
  SUBCASE("TLS 1.2 alone") {
    sent.assign("\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03", 11);
    sent += std::string(32, 'r');
    sent.append("\x00\x00\x02\xc0\x2f\x01\x00\x00\x00", 9);
    sent[4] = static_cast<char>(sent.size() - 5);
    sent[8] = static_cast<char>(sent.size() - 9);
  }
  REQUIRE(hostile.send(sent));
  CHECK(hostile.ended_by_other_side());
  CHECK(test::eventually([&] { return node->local().traffic.connections_refused == 1; }));
  CHECK(node->local().traffic.protocol_errors + node->local().traffic.security_failures == 1);
  CHECK(pulled(node->port(), key.open()) == "mixed");
}

TEST_CASE("a caller's harmless failure does not keep a wrong key at its address out of the log") {
  const ClusterKey key;
  const ClusterKey other;
  const test::LogFile log;
  const auto node = secure_node(key.open());
  for (int i = 0; i < 2; ++i) {
    RawSocket hostile(node->port());
    REQUIRE(hostile.send(std::string_view("\x16\x03\x01\xff\xff", 5)));
    CHECK(hostile.ended_by_other_side());
    CHECK(pulled(node->port(), other.open()) == "rejected");
  }
  CHECK(test::eventually([&] { return node->local().traffic.connections_refused == 4; }));
  CHECK(log.count("refused a caller: broke the TLS handshake") == 1);
  CHECK(test::eventually([&] { return log.has("refused a caller: has another cluster key"); }));
  CHECK(log.count("refused a caller: ") == 2);
}

TEST_CASE("a snapshot that was changed on its way is not blended") {
  const ClusterKey key;
  const auto node = secure_node(key.open(), keyed_elements);
  constexpr std::size_t middle = keyed_elements * sizeof(float) / 2;
  std::string expected = "rejected";
  TamperingProxy::Tamper tamper;
  SUBCASE("a byte") {
    tamper = [](auto& bytes, std::size_t offset) {
      if (offset <= middle && middle < offset + bytes.size())
        bytes[middle - offset] ^= std::byte{1};
      return true;
    };
  }
  SUBCASE("the rest missing") {
    expected = "unreachable";
    tamper = [](auto& bytes, std::size_t offset) { return offset + bytes.size() < middle; };
  }
  const TamperingProxy proxy(node->port(), tamper);
  const auto caller = secure_caller(proxy.port(), key.open(), keyed_elements);
  const Arrival arrival = caller->pull();
  CHECK(arrival.outcome != Outcome::mixed);
  CHECK(caller->local().traffic.snapshots_served == 0);
  if (expected == "rejected") CHECK(caller->local().traffic.protocol_errors >= 1);
  // The node itself is none the worse.
  const auto honest = secure_caller(node->port(), key.open(), keyed_elements);
  CHECK(test::eventually([&] { return honest->pull().outcome == Outcome::mixed; }));
}

TEST_CASE("a key is changed in three steps, at every one of which all nodes speak to each other") {
  const Key old_key = new_key();
  const Key next_key = new_key();
  const Keys steps[] = {{old_key}, {old_key, next_key}, {next_key, old_key}, {next_key}};
  for (std::size_t step = 0; step + 1 < std::size(steps); ++step) {
    CAPTURE(step);
    // Some nodes have taken the step, the others not yet.
    const ClusterKey before(steps[step]);
    const ClusterKey after(steps[step + 1]);
    const auto early = secure_node(after.open());
    CHECK(pulled(early->port(), before.open()) == "mixed");
    const auto late = secure_node(before.open());
    CHECK(pulled(late->port(), after.open()) == "mixed");
  }
  const ClusterKey retired({old_key});
  const auto node = secure_node(ClusterKey(steps[3]).open());
  CHECK(pulled(node->port(), retired.open()) == "rejected");
}

TEST_CASE("after a reload new connections use the new key, and those that stand go on") {
  const Key old_key = new_key();
  const Key next_key = new_key();
  const ClusterKey file({old_key});
  const auto security = file.open();
  const auto before = file.open();
  const auto node = secure_node(security);
  const auto standing = secure_caller(node->port(), before);
  REQUIRE(standing->pull().outcome == Outcome::mixed);
  file.write({next_key});
  CHECK_FALSE(security->reload());
  node->publish(2);
  CHECK(standing->pull().outcome == Outcome::mixed);
  CHECK(node->local().traffic.connections_accepted == 1);
  CHECK(pulled(node->port(), before) == "rejected");
  CHECK(pulled(node->port(), file.open()) == "mixed");
}

TEST_CASE("keys may be reloaded at any time while nodes pull") {
  const ClusterKey file;
  const auto security = file.open();
  const auto node = secure_node(security);
  std::atomic<bool> done{false};
  std::thread reloader([&] {
    while (!done) security->reload();
  });
  for (int i = 0; i < 20; ++i) CHECK(pulled(node->port(), security) == "mixed");
  done = true;
  reloader.join();
}

}  // namespace dpwa
