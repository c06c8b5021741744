#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>

#include "dpwa/net/free_ports.h"
#include "dpwa/node/node.h"
#include "test/support/log_file.h"
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
