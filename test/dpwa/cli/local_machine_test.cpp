#include "dpwa/cli/local_machine.h"

#include <doctest/doctest.h>

using namespace dpwa;
using dpwa::cli::LocalMachine;

namespace {

NodeEntry node_at(const std::string& host, const std::vector<std::string>& addresses) {
  NodeEntry node;
  node.host = host;
  node.addresses = addresses;
  return node;
}

}  // namespace

TEST_CASE("a node is local by loopback, interface address or host name") {
  const LocalMachine machine("gamma", {"10.0.0.3", "fe80::1"});
  CHECK(machine.hosts(node_at("localhost", {"127.0.0.1"})));
  CHECK(machine.hosts(node_at("127.0.1.1", {"127.0.1.1"})));
  CHECK(machine.hosts(node_at("10.0.0.3", {"10.0.0.3"})));
  CHECK(machine.hosts(node_at("fe80::1%eth0", {"fe80::1%eth0"})));
  CHECK(machine.hosts(node_at("gamma", {"198.51.100.1"})));
  CHECK_FALSE(machine.hosts(node_at("10.0.0.4", {"10.0.0.4"})));
  CHECK_FALSE(machine.hosts(node_at("delta", {"10.0.0.4", "fe80::2"})));
}
