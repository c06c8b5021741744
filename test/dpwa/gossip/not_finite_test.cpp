#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "dpwa/net/free_ports.h"
#include "test/support/log_file.h"
#include "test/support/vector_cluster.h"

// What a node says and does when its own model has a NaN or an infinity.

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::VectorCluster;
using test::VectorNode;

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();

constexpr const char* x1_is_not_finite =
    "the model of this node is not finite: tensor 'x1' has a NaN or an infinity";

VectorCluster two_nodes() {
  return VectorCluster(
      2, 64, [](Config& config) { config.gossip.step_budget = config.gossip.timeout; }, 4);
}

}  // namespace

TEST_CASE("a model that is not finite at the start is said before the node waits for others") {
  const test::LogFile log;
  Config config = test::loopback_config(net::free_ports(2), 0);
  config.gossip.start_wait = 50ms;
  VectorNode node(config, 64, 1.0F, 4);
  SUBCASE("NaN") {
    node.values()[20] = not_a_number;
  }
  SUBCASE("infinity") {
    node.values()[16] = -infinite;
  }
  node.values()[63] = not_a_number;
  node.gossip().start();
  CHECK(log.count(x1_is_not_finite) == 1);
  CHECK(log.text().find(x1_is_not_finite) < log.text().find("started alone"));
}

TEST_CASE("a node that joins with an infinity takes over the weights of a peer") {
  const auto ports = net::free_ports(2);
  Config first = test::loopback_config(ports, 0);
  first.gossip.start_wait = 50ms;
  VectorNode running(first, 64, 1.0F);
  running.gossip().start();
  VectorNode joiner(test::loopback_config(ports, 1), 64, infinite);
  joiner.gossip().start();
  CHECK(std::ranges::all_of(joiner.values(), [](float value) { return value == 1; }));
}

TEST_CASE("a model that gets an infinity is said once, and no peer is refused for it") {
  const test::LogFile log;
  VectorCluster cluster = two_nodes();
  cluster.start();
  VectorNode& node = cluster.at(0);
  unsigned refused = 0;
  for (int step = 0; step < 5; ++step) {
    std::ranges::fill(node.values().subspan(16, 16), infinite);
    cluster.at(1).gossip().publish([] { return 1.0; });
    refused += test::step_of(node).refused;
  }
  CHECK(refused == 0);
  CHECK(log.count(x1_is_not_finite) == 1);
}

TEST_CASE("a model that becomes NaN together with that of the peer is said on both") {
  const test::LogFile log;
  VectorCluster cluster = two_nodes();
  cluster.start();
  for (std::size_t i = 0; i < 2; ++i) {
    std::ranges::fill(cluster.at(i).values(), not_a_number);
    cluster.at(i).gossip().publish([] { return 1.0; });
  }
  for (std::size_t i = 0; i < 2; ++i) CHECK(test::step_of(cluster.at(i)).refused == 1);
  CHECK(log.count("the model of this node is not finite: tensor 'x' has") == 2);
}

}  // namespace dpwa
