#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "dpwa/gossip/gossip_node.h"
#include "dpwa/net/free_ports.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"
#include "test/support/temporary_directory.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::VectorNode;

}  // namespace

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
  const std::string self = "Address already in use by process " + std::to_string(::getpid());
  while (!log.has(self)) std::this_thread::yield();
  CHECK(log.has("; trying again"));
  held.reset();
  starting.join();
  CHECK(node.gossip().node().endpoint().port() == ports[0]);

  Config hasty = test::loopback_config(ports, 0);
  hasty.gossip.start_wait = 0ms;
  VectorNode second(hasty, 8);
  CHECK_THROWS_WITH_AS(second.gossip().start(), doctest::Contains(self.c_str()),
                       std::runtime_error);
  VectorNode third(test::loopback_config(ports, 0), 8);
  CHECK_THROWS_WITH_AS(third.gossip().start(),
                       doctest::Contains(", which runs as node 'w1' of cluster 'test'"),
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

namespace {

Config impatient(std::size_t nodes) {
  Config config = test::loopback_config(net::free_ports(nodes), 0);
  config.gossip.start_wait = 50ms;
  config.gossip.finish_wait = 200ms;
  config.gossip.timeout = 100ms;
  return config;
}

}  // namespace

TEST_CASE("a node that is alone says so at the start, in its steps and at the end") {
  const test::LogFile log;
  Config config = impatient(3);
  config.gossip.membership.suspect = 300ms;
  VectorNode node(config, 8);
  node.gossip().start();
  CHECK(log.count("started alone, without 'w2', 'w3'") == 1);
  std::map<Outcome, int> outcomes;
  StepReport last;
  // Also once both peers count as dead, and nobody is asked any more.
  const auto out = [&] {
    last = (node.gossip().update_send([] { return 1.0; }), node.gossip().update_wait());
    ++outcomes[last.outcome];
    const auto members = node.gossip().node().local().members->all();
    return std::ranges::all_of(
        members, [](const Member& member) { return member.status() == MemberStatus::dead; });
  };
  REQUIRE(test::eventually(out));
  for (int i = 0; i < 200; ++i) out();
  const int steps = outcomes[Outcome::unreachable] + outcomes[Outcome::pending];
  CHECK(outcomes[Outcome::pending] <= steps / 2);  // until both have failed for the first time
  CHECK(outcomes.size() == 2);
  CHECK(last.outcome == Outcome::unreachable);
  CHECK(last.pulls_ok == 0);
  CHECK(last.pulls_failed > 20);
  CHECK(static_cast<int>(last.pulls_failed) <= steps);
  const FinishReport report = node.gossip().finish();
  CHECK_FALSE(report.averaged);
  CHECK(report.participants == 1);
  CHECK(report.enough);
  CHECK(log.count("ends alone: no peer") == 1);
  CHECK(log.count("final average over 1 of 3 nodes") == 1);
}

TEST_CASE("the final average waits for a snapshot buffer, and says so when none becomes free") {
  for (const bool released : {true, false}) {
    CAPTURE(released);
    const test::LogFile log;
    test::VectorCluster cluster(2, 8, [released](Config& config) {
      if (released) return;
      config.gossip.finish_wait = 1s;
      config.gossip.timeout = 200ms;
    });
    cluster.start();
    Gossip& first = cluster.at(0).gossip();
    SnapshotStore& store = first.node().local().store;
    std::vector<std::shared_ptr<const Snapshot>> held;  // two of three, by slow readers
    for (int i = 0; i < 2; ++i) {
      first.publish([] { return 1.0; });
      held.push_back(store.latest());
    }
    bool averaged = false;
    test::at_once(3, [&](std::size_t i) {
      if (i == 0) averaged = first.finish().averaged;
      if (i == 1) cluster.at(1).gossip().finish();
      if (i == 2 && released) {
        while (first.node().local().state != wire::NodeState::finished) std::this_thread::yield();
        held.clear();
      }
    });
    CHECK(averaged == released);
    CHECK(log.has("every snapshot buffer is held by a reader") == !released);
  }
}

TEST_CASE("a reload compares the own entry with what is in force, not with the file before") {
  const test::LogFile restored;  // a reload opens the log of its file
  const auto ports = net::free_ports(2);
  Config config = test::loopback_config({ports[0]}, 0);
  const auto log = std::filesystem::temp_directory_path() /
                   ("dpwa-gossip-reload-" + std::to_string(ports[0]) + ".log");
  config.log.file = log.string();
  test::VectorNode node(config, 8);
  const auto said = [&](const Config& fresh) {
    std::filesystem::remove(log);
    node.gossip().reload(fresh);
    return test::read_text(log);
  };
  Config edited = config;
  edited.nodes[0].port = ports[1];
  edited.nodes[0].cores = {0};
  const std::string restart = "needs a restart, not taken over: nodes[w1].";
  for (int times = 0; times < 2; ++times) {  // as long as they differ
    const std::string lines = said(edited);
    CHECK(lines.find(restart + "port: " + std::to_string(ports[0]) + " -> " +
                     std::to_string(ports[1])) != std::string::npos);
    CHECK(lines.find(restart + "cores: none -> [0]") != std::string::npos);
  }
  const std::string reverted = said(config);
  CHECK(reverted.find("needs a restart") == std::string::npos);
  CHECK(reverted.find("reloaded: the cluster file has not changed") != std::string::npos);
  std::filesystem::remove(log);
}

namespace {

using test::step_of;
using test::VectorCluster;

// Steps wait for their pulls.
void in_step(Config& config) {
  config.gossip.step_budget = config.gossip.timeout;
}

std::uint64_t lineage_of(VectorNode& node) {
  return node.gossip().resume_state().lineage;
}

}  // namespace

TEST_CASE("after a reload with pull_probability 0 a node pulls no more, and is pulled from") {
  const test::LogFile restored;  // a reload opens the log of its file
  const auto ports = net::free_ports(2);
  std::vector<Config> configs;
  std::vector<std::unique_ptr<VectorNode>> nodes;
  for (std::size_t i = 0; i < 2; ++i) {
    in_step(configs.emplace_back(test::loopback_config(ports, i)));
    nodes.push_back(std::make_unique<VectorNode>(configs.back(), 8));
  }
  test::at_once(2, [&](std::size_t i) { nodes[i]->gossip().start(); });
  nodes[1]->gossip().publish([] { return 1.0; });
  REQUIRE(step_of(*nodes[0]).outcome == Outcome::mixed);
  configs[0].gossip.pull_probability = 0;
  nodes[0]->gossip().reload(configs[0]);
  for (int step = 0; step < 5; ++step) {
    nodes[1]->gossip().publish([] { return 1.0; });
    CHECK(step_of(*nodes[0]).outcome == Outcome::skipped);
  }
  CHECK(step_of(*nodes[1]).outcome == Outcome::mixed);
}

TEST_CASE("after a split has healed real nodes come to one lineage, that of more of them") {
  struct Split {
    std::vector<double> clocks;  // of each node; the sign tells the side
    double winner;               // its sign; 0: either
  };
  for (const Split& split :
       {Split{{90, 80, -7, -6}, 1}, Split{{5, 4, -60, -70}, -1}, Split{{5, 6, 7, -1000}, 1}}) {
    const test::LogFile log;
    VectorCluster cluster(4, 64, in_step);
    cluster.start();
    for (std::size_t i = 0; i < 4; ++i) {
      const double clock = split.clocks[i];
      cluster.at(i).gossip().restore({std::abs(clock), clock > 0 ? 50U : 70U, 1});
      for (float& value : cluster.at(i).values()) value = clock > 0 ? 1.0F : -1.0F;
    }
    // Else the first to step would hear from all others at once that they descend from the start.
    for (std::size_t i = 0; i < 4; ++i) cluster.at(i).gossip().publish([] { return 1.0; });
    const auto agreed = [&] {
      for (std::size_t i = 1; i < 4; ++i)
        if (lineage_of(cluster.at(i)) != lineage_of(cluster.at(0))) return false;
      return true;
    };
    int rounds = 0;
    for (; rounds < 300 && !agreed(); ++rounds)
      for (std::size_t i = 0; i < 4; ++i) step_of(cluster.at(i));
    CHECK(agreed());
    CHECK(lineage_of(cluster.at(0)) == (split.winner > 0 ? 50U : 70U));
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(cluster.at(i).values()[3] == (split.winner > 0 ? 1.0F : -1.0F));
    CHECK(log.count("more nodes of the file descend from these") <= 2);
  }
}

}  // namespace dpwa
