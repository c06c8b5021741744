#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include "dpwa/gossip/gossip_node.h"
#include "dpwa/net/free_ports.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;

void wait_for_pulls(Config& config) {
  config.gossip.step_budget = config.gossip.timeout;
}

using test::at_once;
using test::step_of;
using test::VectorCluster;
using test::VectorNode;

}  // namespace

TEST_CASE("nodes that start together all make their first step at clock 0, and from one model") {
  VectorCluster cluster(4, 1 << 16);
  std::array<double, 4> clocks{};
  std::array<float, 4> values{};
  at_once(4, [&](std::size_t i) {
    VectorNode& node = cluster.at(i);
    for (float& value : node.values()) value = static_cast<float>(i) + 1;
    node.gossip().start();
    clocks[i] = node.gossip().resume_state().clock;
    values[i] = node.values()[1];
    for (int step = 0; step < 200; ++step) {  // whoever begins trains at once
      node.values()[1] += 1;
      node.gossip().publish([] { return 1.0; });
    }
  });
  CHECK(clocks == std::array<double, 4>{});
  const auto lineage = cluster.at(0).gossip().resume_state().lineage;
  CHECK(lineage != 0);
  for (std::size_t i = 1; i < 4; ++i)
    CHECK(cluster.at(i).gossip().resume_state().lineage == lineage);
  for (const float value : values) CHECK(value == values[0]);
}

TEST_CASE("one seed gives one choice of peers, and every node and seed its own") {
  const auto choices = [](std::optional<std::uint64_t> seed, std::size_t node = 0) {
    VectorCluster cluster(5, 16, [seed](Config& config) {
      wait_for_pulls(config);
      config.gossip.ledger = false;  // one node alone pulls
      config.gossip.seed = seed;
    });
    cluster.start();
    std::string chosen;
    for (int step = 0; step < 30; ++step) {
      for (std::size_t i = 0; i < cluster.size(); ++i) {
        if (i != node) cluster.at(i).gossip().publish([] { return 1.0; });
      }
      const StepReport report = step_of(cluster.at(node));
      REQUIRE(report.outcome == Outcome::mixed);
      chosen += report.peer + ' ';
    }
    return chosen;
  };
  const std::string first = choices(7);
  CHECK(choices(7) == first);
  CHECK(choices(8) != first);
  CHECK(choices({}) != choices({}));
  // The places of the peers in the list differ from node to node; so do the lots.
  std::string other = choices(7, 1);
  std::ranges::transform(other, other.begin(), [](char c) { return c == '1' ? '2' : c; });
  CHECK(other != first);
}

TEST_CASE("two runs of one seed descend from different weights") {
  const auto lineage = [] {
    VectorCluster cluster(2, 16, [](Config& config) { config.gossip.seed = 7; });
    cluster.start();
    return cluster.at(0).gossip().resume_state().lineage;
  };
  CHECK(lineage() != lineage());
}

TEST_CASE("a step with a budget of zero never waits and blends a late pull at a later step") {
  VectorCluster cluster(2, 1 << 20);
  cluster.start();
  bool mixed = false;
  for (int i = 0; i < 10000 && !mixed; ++i) {
    const StepReport report = step_of(cluster.at(0));
    CHECK(report.waited == 0ns);
    mixed = report.outcome == Outcome::mixed;
    if (!mixed) {
      CHECK(report.outcome == Outcome::pending);
      std::this_thread::yield();
    }
  }
  CHECK(mixed);
}

TEST_CASE("a late pull is blended before its step's publish, which holds the result") {
  for (const BlendMode blend : {BlendMode::delta, BlendMode::lerp}) {
    VectorCluster cluster(2, 1000, [blend](Config& config) { config.gossip.blend = blend; });
    cluster.start();
    VectorNode& node = cluster.at(0);
    for (float& value : cluster.at(1).values()) value = 8.0F;
    cluster.at(1).gossip().publish([] { return 1.0; });
    node.gossip().publish([] { return 1.0; });
    node.gossip().begin_pull();
    REQUIRE(test::eventually([&] { return !node.gossip().node().client().under_way(); }));
    const auto version = node.gossip().node().local().store.latest()->progress().version;

    node.gossip().update_send([] { return 2.5; });
    const auto snapshot = node.gossip().node().local().store.latest();
    const float* published = reinterpret_cast<const float*>(snapshot->bytes().data());
    CHECK(node.values()[0] == 4.0F);
    CHECK(std::ranges::equal(node.values(), std::span(published, 1000)));
    CHECK(snapshot->progress().version == version + 1);
    CHECK(snapshot->progress().loss == 2.5);
    CHECK(snapshot->progress().clock == 2.0);  // 1, blended with 1, and 1 for this publish
    const StepReport report = node.gossip().update_wait();
    CHECK(report.outcome == Outcome::mixed);
    CHECK(report.clock == 2.0);
  }
}

TEST_CASE("while readers hold all buffers, no pull is compared with a model from before a blend") {
  VectorCluster cluster(2, 100, wait_for_pulls);
  cluster.start();
  VectorNode& node = cluster.at(0);
  SnapshotStore& store = node.gossip().node().local().store;
  for (float& value : cluster.at(1).values()) value = 8.0F;
  const auto steps = [&](int count) {
    int blends = 0;
    for (int step = 0; step < count; ++step) {
      cluster.at(1).gossip().publish([] { return 1.0; });
      blends += step_of(node).outcome == Outcome::mixed ? 1 : 0;
    }
    return blends;
  };
  node.gossip().publish([] { return 1.0; });
  auto one = store.latest();
  node.gossip().publish([] { return 1.0; });
  auto other = store.latest();
  node.gossip().publish([] { return 1.0; });
  const auto until = [&](float value) {  // a pull may end late
    for (int tries = 0; tries < 1000 && node.values()[0] < value; ++tries) steps(1);
    return node.values()[0];
  };
  CHECK(until(4.0F) == 4.0F);
  CHECK(steps(5) == 0);
  CHECK(node.values()[0] == 4.0F);
  one.reset();
  other.reset();
  const float end = until(7.9F);
  CHECK(end > 7.9F);
  CHECK(end <= 8.0F);
}

TEST_CASE("a report names peer, factor, staleness, distance, bytes and clock of a blend") {
  VectorCluster cluster(2, 100, wait_for_pulls);
  cluster.start();
  for (int i = 0; i < 3; ++i) cluster.at(1).gossip().publish([] { return 2.0; });
  for (float& value : cluster.at(0).values()) value = 3.0F;
  const StepReport report = step_of(cluster.at(0));
  CHECK(report.outcome == Outcome::mixed);
  CHECK(report.peer == "w2");
  CHECK(report.factor == 0.5);
  CHECK(report.staleness == -2.0);
  CHECK(report.distance == doctest::Approx(30.0));  // 100 elements, 3 apart
  CHECK(report.bytes == 400);
  CHECK(report.clock == 2.0);  // (1 + 3) / 2
  CHECK(cluster.at(0).values()[99] == 1.5F);
}

TEST_CASE(
    "a report says whether a blend came from the memory of a peer, whatever the model's size") {
  for (const std::size_t elements : {0, 1, 100}) {
    for (const bool same_host : {true, false}) {
      CAPTURE(elements);
      CAPTURE(same_host);
      VectorCluster cluster(2, elements, [same_host](Config& config) {
        wait_for_pulls(config);
        config.transport.same_host = same_host;
      });
      cluster.start();
      std::ranges::fill(cluster.at(1).values(), 2.0F);
      cluster.at(1).gossip().publish([] { return 2.0; });
      const StepReport report = step_of(cluster.at(0));
      CHECK(report.outcome == Outcome::mixed);
      CHECK(report.same_host == (same_host && elements > 0));  // of nothing there is no memory
      CHECK(std::ranges::count(cluster.at(0).values(), 1.0F) == static_cast<long>(elements));
      CHECK_FALSE(step_of(cluster.at(0)).same_host);  // nothing newer: no blend
    }
  }
}

TEST_CASE("with blocks each pull brings one block, all of them in turn, and says which") {
  VectorCluster cluster(
      2, 64,
      [](Config& config) {
        wait_for_pulls(config);
        config.gossip.blocks = 4;
      },
      4);
  cluster.start();
  VectorNode& node = cluster.at(0);
  for (float& value : cluster.at(1).values()) value = 8.0F;
  cluster.at(1).gossip().publish([] { return 1.0; });
  for (int round = 0; round < 4; ++round) {
    const StepReport report = step_of(node);
    CHECK(report.outcome == Outcome::mixed);
    CHECK(report.bytes == 64);
    CHECK(report.blocks == 4);
    for (std::size_t i = 0; i < 16; ++i) CHECK(node.values()[report.block * 16 + i] == 4.0F);
    CHECK(std::ranges::count(node.values(), 4.0F) == 16 * (round + 1));
  }
  // Nothing newer to be had: no block is blended twice.
  CHECK(step_of(node).outcome == Outcome::skipped);
  CHECK(std::ranges::count(node.values(), 4.0F) == 64);
}

TEST_CASE("nodes with different models refuse each other and name the first tensor that differs") {
  const auto ports = net::free_ports(2);
  Config first = test::loopback_config(ports, 0);
  first.gossip.start_wait = 50ms;
  VectorNode node(first, 8);
  node.gossip().start();
  VectorNode other(test::loopback_config(ports, 1), 9);
  CHECK_THROWS_WITH_AS(other.gossip().start(), doctest::Contains("'x'"), std::runtime_error);
}

TEST_CASE("the final average is the same on every node, bit for bit, and nobody leaves too early") {
  VectorCluster cluster(4, 1000);
  cluster.start();
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t e = 0; e < 1000; ++e)
      cluster.at(i).values()[e] = static_cast<float>(i * 1000 + e) / 7.0F;
  }
  cluster.for_all_at_once([](VectorNode& node) {
    const FinishReport report = node.gossip().finish();
    CHECK(report.averaged);
    CHECK(report.participants == 4);
    CHECK(report.distance_to_average > 0);
  });
  for (std::size_t e = 0; e < 1000; ++e) {
    CHECK(cluster.at(0).values()[e] ==
          doctest::Approx((1500.0 + static_cast<double>(e)) / 7.0).epsilon(1e-6));
    for (std::size_t i = 1; i < 4; ++i)
      CHECK(cluster.at(i).values()[e] == cluster.at(0).values()[e]);
  }
}

TEST_CASE("stopping does not wait for a pull from a silent peer") {
  const auto ports = net::free_ports(2);
  boost::asio::io_context io;
  // Accepts connections in the kernel and never answers.
  boost::asio::ip::tcp::acceptor silent(io, {boost::asio::ip::address_v4::loopback(), ports[1]});
  Config config = test::loopback_config(ports, 0);
  config.gossip.start_wait = 50ms;
  config.gossip.timeout = 200ms;
  VectorNode node(config, 8);
  node.gossip().start();
  config.gossip.timeout = 1h;  // CTest waits for less
  node.gossip().reload(config);
  node.gossip().update_send([] { return 1.0; });
  node.gossip().leave();
}

}  // namespace dpwa
