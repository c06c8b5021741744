#include <doctest/doctest.h>

#include "dpwa/config/config.h"
#include "test/dpwa/config/scratch_file.h"

using namespace dpwa::test;

namespace {

std::string two_nodes(const std::string& first, const std::string& second,
                      const std::string& rest = "") {
  return "nodes:\n  - {name: a, " + first + "}\n  - {name: b, " + second + "}\n" + rest;
}

const std::string insecure = "security: {mode: insecure}\n";

}  // namespace

TEST_CASE("two nodes at one host and port are refused, however the host is written") {
  CHECK(error_of(two_nodes("port: 5", "port: 5")) ==
        "3: nodes[1].port: '127.0.0.1:5' is already the endpoint of node 'a'; accepted: a port or "
        "host of "
        "its own");
  CHECK(error_of(two_nodes("host: 127.0.0.1, port: 5", "host: localhost, port: 5"))
            .starts_with("3: nodes[1].port: 'localhost:5' is already the endpoint of node 'a';"));
  CHECK(error_of(two_nodes("host: \"::1\", port: 5", "host: \"0:0:0:0:0:0:0:1\", port: 5"))
            .starts_with("3: nodes[1].port: "));
  CHECK(error_of(two_nodes("host: 127.0.0.1, port: 5", "host: 127.0.0.2, port: 5")).empty());
  CHECK(error_of(two_nodes("host: 127.0.0.1, port: 5", "host: 127.0.0.1, port: 6")).empty());
}

TEST_CASE("two nodes that listen at one address and port of one machine are refused") {
  CHECK(error_of(two_nodes("host: 127.0.0.1, bind: 0.0.0.0, port: 5",
                           "host: 127.0.0.2, bind: 0.0.0.0, port: 5", insecure))
            .starts_with("3: nodes[1].bind: '0.0.0.0:5' is already the endpoint of node 'a';"));
  CHECK(error_of(two_nodes("host: 10.0.0.1, bind: 10.0.0.9, port: 5",
                           "host: 10.0.0.2, bind: 10.0.0.9, port: 5", insecure))
            .starts_with("3: nodes[1].bind: '10.0.0.9:5' is already the endpoint"));
}

TEST_CASE("nodes of two machines may listen on the same port of every interface") {
  CHECK(error_of(two_nodes("host: 10.0.0.1, bind: 0.0.0.0, port: 5",
                           "host: 10.0.0.2, bind: 0.0.0.0, port: 5", insecure))
            .empty());
  CHECK(error_of(two_nodes("host: 10.0.0.1, bind: 127.0.0.1, port: 5",
                           "host: 10.0.0.2, bind: 127.0.0.1, port: 5"))
            .empty());
}

TEST_CASE("listening beyond loopback needs an explicit security mode") {
  CHECK(
      error_of(two_nodes("port: 5", "host: 10.0.0.2, port: 5")) ==
      "3: nodes[1].host: '10.0.0.2' listens beyond loopback without a security mode; accepted: "
      "security: {mode: psk, key_file: FILE}, {mode: insecure} on a private network, or a loopback "
      "address");
  CHECK(error_of(two_nodes("port: 5", "bind: 0.0.0.0, port: 6"))
            .starts_with("3: nodes[1].bind: '0.0.0.0' listens beyond loopback"));
  CHECK(error_of(two_nodes("port: 5", "host: \"::ffff:10.0.0.2\", port: 5"))
            .starts_with("3: nodes[1].host: '::ffff:10.0.0.2' listens beyond loopback"));
  CHECK(error_of(two_nodes("port: 5", "host: 10.0.0.2, port: 5", insecure)).empty());
  CHECK(error_of(two_nodes("port: 5", "host: \"::1\", port: 5")).empty());
}

TEST_CASE("a host that does not resolve is refused") {
  const std::string error = error_of(two_nodes("port: 5", "host: no-such-host.invalid, port: 5"));
  CHECK(error.starts_with("3: nodes[1].host: 'no-such-host.invalid' cannot be resolved ("));
  CHECK(error.ends_with("); accepted: an IP address or a host name known here"));
  CHECK(error_of(two_nodes("port: 5", "bind: no-such-host.invalid, port: 6"))
            .starts_with("3: nodes[1].bind: 'no-such-host.invalid' cannot be resolved ("));
}
