#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "dpwa/net/free_ports.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/fake_peer.h"
#include "test/support/log_file.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::VectorNode;

// Answers every HELLO with `reply`.
test::FakePeer::Script answering(std::vector<std::byte> (*reply)(std::uint32_t)) {
  return [reply](test::RawSocket& socket) {
    while (const auto frame = socket.read_frame()) {
      if (frame->header.type != wire::MessageType::hello) continue;
      if (!socket.send(reply(frame->header.request_id))) return;
    }
  };
}

std::vector<std::byte> joining(std::uint32_t id) {
  return wire::encode(wire::Welcome{"w1", 1, wire::capability(Codec::raw)}, id);
}

std::vector<std::byte> own_name(std::uint32_t id) {
  return wire::encode(wire::Reject{wire::RejectCode::own_name, "the name is taken"}, id);
}

}  // namespace

TEST_CASE("a first node that says for ever that it joins holds the others for one wait only") {
  const auto ports = net::free_ports(3);
  const test::FakePeer first(answering(joining), ports[0]);
  std::vector<std::unique_ptr<VectorNode>> nodes;
  for (std::size_t i : {1U, 2U}) {
    Config config = test::loopback_config(ports, i);
    config.gossip.start_wait = 400ms;
    config.gossip.timeout = 100ms;
    nodes.push_back(std::make_unique<VectorNode>(config, 8, static_cast<float>(i)));
  }
  std::thread other([&] { nodes[1]->gossip().start(); });
  nodes[0]->gossip().start();
  other.join();
  // Both from one node's weights, at clock 0.
  CHECK(nodes[0]->values()[0] == nodes[1]->values()[0]);
  for (const auto& node : nodes) CHECK(node->gossip().resume_state().clock == 0);
  CHECK(nodes[0]->gossip().resume_state().lineage == nodes[1]->gossip().resume_state().lineage);
}

TEST_CASE("one node that says the name is taken turns nobody away before the wait is over") {
  const auto ports = net::free_ports(4);
  const test::FakePeer liar(answering(own_name), ports[0]);
  std::vector<std::unique_ptr<VectorNode>> nodes;
  for (std::size_t i : {1U, 2U, 3U}) {
    Config config = test::loopback_config(ports, i);
    config.gossip.timeout = 200ms;
    nodes.push_back(std::make_unique<VectorNode>(config, 8, 1.0F));
  }
  // For longer than the patience with a refusal the liar is all that answers.
  std::thread first([&] { CHECK_NOTHROW(nodes[0]->gossip().start()); });
  const auto from = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - from < 1500ms) std::this_thread::yield();
  std::thread second([&] { nodes[1]->gossip().start(); });
  nodes[2]->gossip().start();
  first.join();
  second.join();
}

TEST_CASE("an address in use is tried again until it is free, within the wait") {
  const test::LogFile log;
  const auto ports = net::free_ports(1);
  boost::asio::io_context io;
  std::optional<boost::asio::ip::tcp::acceptor> held;
  held.emplace(io,
               boost::asio::ip::tcp::endpoint(boost::asio::ip::address_v4::loopback(), ports[0]),
               /*reuse_addr=*/false);
  VectorNode node(test::loopback_config(ports, 0), 8);
  std::thread starting([&] { CHECK_NOTHROW(node.gossip().start()); });
  while (!log.has("Address already in use; trying again")) std::this_thread::yield();
  held.reset();
  starting.join();
  CHECK(node.gossip().node().port() == ports[0]);

  Config hasty = test::loopback_config(ports, 0);
  hasty.gossip.start_wait = 0ms;
  VectorNode second(hasty, 8);
  CHECK_THROWS_WITH_AS(second.gossip().start(), doctest::Contains("Address already in use"),
                       std::runtime_error);
  VectorNode third(test::loopback_config(ports, 0), 8);
  CHECK_THROWS_WITH_AS(third.gossip().start(),
                       doctest::Contains("by a process that runs as node 'w1' of cluster 'test'"),
                       std::runtime_error);
}

TEST_CASE("a loss given to update_wait is the own loss of what is blended then") {
  for (const bool given : {true, false}) {
    test::VectorCluster cluster(2, 8, [](Config& config) {
      config.gossip.step_budget = config.gossip.timeout;
      config.interpolation.method = "loss";
    });
    cluster.start();
    cluster.at(1).gossip().publish([] { return 1.0; });
    Gossip& node = cluster.at(0).gossip();
    node.update_send([] { return 1.0; });
    const StepReport report = given ? node.update_wait([] { return 3.0; }) : node.update_wait();
    CHECK(report.outcome == Outcome::mixed);
    CHECK(report.factor == doctest::Approx(given ? 0.75 : 0.5));  // l / (l + l_peer)
  }
}

}  // namespace dpwa
