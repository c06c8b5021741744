#include <doctest/doctest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "dpwa/base/port_holder.h"
#include "dpwa/net/free_ports.h"
#include "dpwa/node/endpoint.h"
#include "dpwa/security/key_file.h"
#include "test/support/certificates.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"
#include "test/support/vector_cluster.h"

// Listening, as every process that has a place in the cluster file does it.
namespace dpwa {
namespace {

using boost::asio::ip::tcp;

struct Taken {
  boost::asio::io_context io;
  tcp::acceptor acceptor;
  explicit Taken(const char* address)
      : acceptor(io, tcp::endpoint(boost::asio::ip::make_address(address), 0)) {}
  std::uint16_t port() const { return acceptor.local_endpoint().port(); }
};

}  // namespace

TEST_CASE("the process that has a port is found by its address, or by one that includes it") {
  const std::string self = "process " + std::to_string(::getpid()) + " (";
  const Taken one("127.0.0.1");
  CHECK(port_holder("127.0.0.1", one.port()).starts_with(self));
  CHECK(port_holder("0.0.0.0", one.port()).starts_with(self));
  CHECK(port_holder("127.0.0.3", one.port()).empty());
  CHECK(port_holder("no address", one.port()).empty());
  const Taken all("0.0.0.0");
  CHECK(port_holder("127.0.0.3", all.port()).starts_with(self));
  CHECK(port_holder("127.0.0.1", net::free_ports(1).front()).empty());
}

TEST_CASE("the network threads of a node have names of their own") {
  test::VectorNode node(test::loopback_config(net::free_ports(1), 0), 8);
  node.gossip().start();
  const auto names = [] {
    std::set<std::string> found;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string name;
      std::getline(std::ifstream(thread.path() / "comm"), name);
      found.insert(name);
    }
    return found;
  };
  CHECK(test::eventually(  // each names itself once it runs
      [&] { return names().contains("dpwa-rx") && names().contains("dpwa-tx"); }));
}

TEST_CASE("a process open to every caller beyond loopback warns in its log at each start") {
  const test::LogFile log;
  Config config = test::loopback_config(net::free_ports(1), 0);
  config.gossip.start_wait = std::chrono::milliseconds(20);
  const char* warning = "unencrypted, and takes every caller for a member";
  const auto start = [&] {
    test::VectorNode node(config, 8);
    node.gossip().start();
  };
  start();
  CHECK_FALSE(log.has(warning));
  config.nodes[0].bind_address = "0.0.0.0";
  config.security.mode = "insecure";
  start();
  start();
  CHECK(log.count(warning) == 2);
  Endpoint(config, 1).start();
  CHECK(log.count(warning) == 3);
  CHECK(log.has("listens on 0.0.0.0 port " + std::to_string(config.nodes[0].port)));
  const test::SecretFolder folder;
  config.security.mode = "psk";
  config.security.key_file = folder.path("key");
  create_private_file(config.security.key_file, key_file_text({new_key()}));
  start();
  CHECK(log.count(warning) == 3);
}

}  // namespace dpwa
