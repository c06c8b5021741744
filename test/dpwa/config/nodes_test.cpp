#include <doctest/doctest.h>

#include <atomic>
#include <memory>

#include "dpwa/base/resolve_host.h"
#include "dpwa/config/config.h"
#include "test/dpwa/config/scratch_file.h"
#include "test/support/log_file.h"

using namespace dpwa;
using namespace dpwa::test;

namespace {

const char* two_nodes =
    "nodes: [{name: w1, port: 24000}, {name: w2, port: 24001}]\nsecurity: {mode: insecure}\n";

std::string error_with_name(const std::filesystem::path& file, const std::string& name) {
  try {
    load_config(file, name);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the environment overrides host, port, bind and log level of the own node only") {
  const ScratchFile file(two_nodes);
  const ScopedVariable host("DPWA_HOST", "127.0.0.9"), port("DPWA_PORT", "25000"),
      bind("DPWA_BIND", "0.0.0.0"), level("DPWA_LOG_LEVEL", "warn");
  const Config config = load_config(file.path(), "w2");
  CHECK(config.self_node().host == "127.0.0.9");
  CHECK(config.self_node().addresses == std::vector<std::string>{"127.0.0.9"});
  CHECK(config.self_node().port == 25000);
  CHECK(config.self_node().bind == "0.0.0.0");
  CHECK(config.log.level == "warn");
  CHECK(config.nodes[0].host == "127.0.0.1");
  CHECK(config.nodes[0].port == 24000);
  const Config cluster = load_cluster(file.path());
  CHECK(cluster.nodes[1].port == 24001);
  CHECK(cluster.log.level == "info");
}

TEST_CASE("the environment overrides the endpoint of the own server") {
  const ScratchFile file(
      "nodes: [{name: w1, host: 127.0.0.1, port: 24000}]\nbackend: kvstore\n"
      "kvstore: {servers: [{name: s1, host: no-such-host.invalid, port: 24100}]}\n");
  const ScopedVariable host("DPWA_HOST", "127.0.0.9"), port("DPWA_PORT", "25000");
  const Config config = load_server_config(file.path(), "s1");
  REQUIRE(config.self_server() != nullptr);
  CHECK(config.self_server()->addresses == std::vector<std::string>{"127.0.0.9"});
  CHECK(config.self_server()->port == 25000);
  CHECK(config.nodes[0].port == 24000);
}

TEST_CASE("joining by the own address is refused, by a name that has others too it is not") {
  const ScratchFile file(
      "nodes: [{name: w1, host: 127.0.0.2, port: 24000}]\nsecurity: {mode: insecure}\n");
  const ScopedVariable host("DPWA_HOST", "127.0.0.9"), port("DPWA_PORT", "25000");
  const auto error = [&](const std::string& name, const std::string& join) -> std::string {
    try {
      load_config(file.path(), name, {join});
    } catch (const ConfigError& refused) {
      return refused.what();
    }
    return "";
  };
  CHECK(error("w9", "127.0.0.9:25000") ==
        "--join: '127.0.0.9:25000' is where this node, 'w9', listens itself; accepted: the "
        "HOST:PORT of another node");
  CHECK(error("w9", "nowhere") ==
        "--join: 'nowhere' is not the address of a node; accepted: HOST:PORT, such as "
        "10.0.0.1:7001");
  CHECK(error("w9", "127.0.0.9:25001").empty());
  CHECK(error("w9", "127.0.0.2:25000").empty());
  CHECK(error("w9", "no-such-host.invalid:25000").empty());  // yet
  const ScopedVariable bind("DPWA_BIND", "0.0.0.0");
  CHECK(error("w9", "127.0.0.1:25000").find("listens itself") != std::string::npos);
  const ScopedVariable no_port("DPWA_PORT", "");
  CHECK(error("w9", "127.0.0.1:25000").find("accepted: DPWA_PORT") != std::string::npos);
}

TEST_CASE("the name comes from DPWA_NAME when none is given") {
  const ScratchFile file(two_nodes);
  const ScopedVariable name("DPWA_NAME", "w2");
  CHECK(load_config(file.path()).self == "w2");
  CHECK(load_config(file.path(), "w1").self == "w1");
}

TEST_CASE("an empty variable counts as unset") {
  const ScratchFile file(two_nodes);
  const ScopedVariable port("DPWA_PORT", "");
  CHECK(load_config(file.path(), "w1").self_node().port == 24000);
}

TEST_CASE("a missing or unknown own name lists the names") {
  const ScratchFile file(two_nodes);
  CHECK(error_with_name(file.path(), "") ==
        file.path().string() +
            ":1: nodes: no node name was given (--name or DPWA_NAME); accepted: w1, w2");
  CHECK(error_with_name(file.path(), "node9") ==
        file.path().string() + ":1: nodes: no node is named 'node9'; accepted: w1, w2");
  CHECK(error_with_name(file.path(), "w1x") ==
        file.path().string() +
            ":1: nodes: no node is named 'w1x'; did you mean 'w1'? accepted: w1, w2");
}

TEST_CASE("a bad override names the variable") {
  const ScratchFile file(two_nodes);
  SUBCASE("port") {
    const ScopedVariable port("DPWA_PORT", "abc");
    CHECK(error_with_name(file.path(), "w1") ==
          "environment: DPWA_PORT: 'abc' is not a TCP port; accepted: a whole number from 1 to "
          "65535");
  }
  SUBCASE("log level") {
    const ScopedVariable level("DPWA_LOG_LEVEL", "inf");
    CHECK(error_with_name(file.path(), "w1") ==
          "environment: DPWA_LOG_LEVEL: 'inf' is unknown, did you mean 'info'? accepted: trace, "
          "debug, info, "
          "warn, error, off");
  }
  SUBCASE("a host that does not resolve") {
    const ScopedVariable host("DPWA_HOST", "no-such-host.invalid");
    CHECK(error_with_name(file.path(), "w1")
              .starts_with("environment: DPWA_HOST: 'no-such-host.invalid' cannot be resolved"));
  }
  SUBCASE("an endpoint that another node has") {
    const ScopedVariable port("DPWA_PORT", "24000");
    CHECK(error_with_name(file.path(), "w2") ==
          "environment: DPWA_PORT: '127.0.0.1:24000' is already the endpoint of node 'w1'; "
          "accepted: a port "
          "or host of its own");
  }
}

namespace {

std::string two_endpoints(const std::string& first, const std::string& second,
                          const std::string& rest = "") {
  return "nodes:\n  - {name: a, " + first + "}\n  - {name: b, " + second + "}\n" + rest;
}

const std::string insecure = "security: {mode: insecure}\n";

}  // namespace

TEST_CASE("two nodes at one host and port are refused, however the host is written") {
  CHECK(error_of(two_endpoints("port: 5", "port: 5")) ==
        "3: nodes[1].port: '127.0.0.1:5' is already the endpoint of node 'a'; accepted: a port or "
        "host of "
        "its own");
  CHECK(error_of(two_endpoints("host: 127.0.0.1, port: 5", "host: localhost, port: 5"))
            .starts_with("3: nodes[1].port: 'localhost:5' is already the endpoint of node 'a';"));
  CHECK(error_of(two_endpoints("host: \"::1\", port: 5", "host: \"0:0:0:0:0:0:0:1\", port: 5"))
            .starts_with("3: nodes[1].port: "));
  CHECK(error_of(two_endpoints("host: 127.0.0.1, port: 5", "host: 127.0.0.2, port: 5")).empty());
  CHECK(error_of(two_endpoints("host: 127.0.0.1, port: 5", "host: 127.0.0.1, port: 6")).empty());
}

TEST_CASE("two nodes that listen at one address and port of one machine are refused") {
  CHECK(error_of(two_endpoints("host: 127.0.0.1, bind: 0.0.0.0, port: 5",
                               "host: 127.0.0.2, bind: 0.0.0.0, port: 5", insecure))
            .starts_with("3: nodes[1].bind: '0.0.0.0:5' is already the endpoint of node 'a';"));
  CHECK(error_of(two_endpoints("host: 10.0.0.1, bind: 10.0.0.9, port: 5",
                               "host: 10.0.0.2, bind: 10.0.0.9, port: 5", insecure))
            .starts_with("3: nodes[1].bind: '10.0.0.9:5' is already the endpoint"));
}

TEST_CASE("nodes of two machines may listen on the same port of every interface") {
  CHECK(error_of(two_endpoints("host: 10.0.0.1, bind: 0.0.0.0, port: 5",
                               "host: 10.0.0.2, bind: 0.0.0.0, port: 5", insecure))
            .empty());
  CHECK(error_of(two_endpoints("host: 10.0.0.1, bind: 127.0.0.1, port: 5",
                               "host: 10.0.0.2, bind: 127.0.0.1, port: 5"))
            .empty());
}

TEST_CASE("listening beyond loopback needs an explicit security mode") {
  CHECK(
      error_of(two_endpoints("port: 5", "host: 10.0.0.2, port: 5")) ==
      "3: nodes[1].host: '10.0.0.2' listens beyond loopback without a security mode; accepted: "
      "security: {mode: psk, key_file: FILE}, {mode: insecure} on a private network, or a loopback "
      "address");
  CHECK(error_of(two_endpoints("port: 5", "bind: 0.0.0.0, port: 6"))
            .starts_with("3: nodes[1].bind: '0.0.0.0' listens beyond loopback"));
  CHECK(error_of(two_endpoints("port: 5", "host: \"::ffff:10.0.0.2\", port: 5"))
            .starts_with("3: nodes[1].host: '::ffff:10.0.0.2' listens beyond loopback"));
  CHECK(error_of(two_endpoints("port: 5", "host: 10.0.0.2, port: 5", insecure)).empty());
  CHECK(error_of(two_endpoints("port: 5", "host: \"::1\", port: 5")).empty());
}

TEST_CASE("a host that does not resolve is refused by its own node, and a line for the others") {
  for (const std::string key : {"host", "bind"}) {
    const test::LogFile log;
    const ScratchFile file(two_endpoints("port: 5", key + ": no-such-host.invalid, port: 6"));
    const std::string problem = file.path().string() + ":3: nodes[1]." + key +
                                ": 'no-such-host.invalid' cannot be resolved (";
    const std::string error = error_with_name(file.path(), "b");
    CHECK(error.starts_with(problem));
    CHECK(error.ends_with("); accepted: an IP address or a host name known here"));
    CHECK(log.count(problem) == 0);
    const Config others = load_config(file.path(), "a");
    CHECK(others.nodes[1].addresses.empty() == (key == "host"));
    CHECK(load_cluster(file.path()).nodes == others.nodes);
    CHECK(log.count(problem) == 2);
  }
}

TEST_CASE("a reload keeps the addresses of a host that does not resolve any more") {
  const test::LogFile log;
  const ScratchFile file(two_endpoints("port: 5", "host: b.test, port: 6", insecure));
  const auto known = std::make_shared<std::atomic<bool>>(true);
  const ResolverDouble resolver([known](const std::string&) {
    return *known ? Resolved{{"192.0.2.7"}, ""} : Resolved{{}, "no answer"};
  });
  const Config before = load_config(file.path(), "a");
  *known = false;
  CHECK(reload_config(file.path(), "a").nodes == before.nodes);
  CHECK(before.nodes[1].addresses == std::vector<std::string>{"192.0.2.7"});
  CHECK(log.count("'b.test' cannot be resolved (no answer)") == 1);
}
