#include "dpwa/node/waiting_node.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/net/free_ports.h"
#include "dpwa/net/status_query.h"
#include "dpwa/security/key_file.h"
#include "dpwa/security/security.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/support/certificates.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

namespace dpwa {

namespace {

// The stand-in of w1 of two nodes.
struct Waiting {
  std::vector<std::uint16_t> ports = net::free_ports(2);
  Config config = test::loopback_config(ports, 0);

  StatusAnswer ask(const std::string& cluster = "test", const Security* security = nullptr) const {
    const PeerAddress address{"w1", {"127.0.0.1"}, ports[0]};
    return query_status(cluster, {address}, test::patience, security).at(0);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Waiting, "a node that waits for its trainer says so to an observer, again") {
  const WaitingNode waiting(config);
  CHECK(waiting.port() == ports[0]);
  for (int i = 0; i < 2; ++i) {
    const StatusAnswer answer = ask();
    REQUIRE(answer.error == "");
    const auto status = nlohmann::json::parse(answer.json);
    CHECK(status["node"] == "w1");
    CHECK(status["state"] == "waiting");
    CHECK(status["clock"].is_null());
  }
  CHECK(ask("other").error == "node 'w1' belongs to cluster 'test', not 'other'");
}

TEST_CASE_FIXTURE(Waiting, "a node that calls one that waits is hung up on without a word") {
  const WaitingNode waiting(config);
  test::RawSocket caller(ports[0]);
  caller.send(wire::encode(test::sound_hello(), 1));
  CHECK_FALSE(caller.read_frame().has_value());
  CHECK(caller.ended_by_other_side());
  test::RawSocket stranger(ports[0]);
  stranger.send(std::string(64, '?'));
  CHECK(stranger.ended_by_other_side());
  CHECK(ask().error == "");
}

TEST_CASE_FIXTURE(Waiting, "a node whose peer waits starts without it") {
  config.gossip.start_wait = std::chrono::milliseconds(50);
  Config other = test::loopback_config(ports, 1);
  other.gossip.start_wait = config.gossip.start_wait;
  const WaitingNode waiting(config);
  test::VectorNode node(other, 8);
  node.gossip().start();
  node.gossip().update_send([] { return 0.5; });
  CHECK(node.gossip().update_wait().pulls_ok == 0);
}

TEST_CASE_FIXTURE(Waiting, "the address is free for the node itself once nobody waits any more") {
  config.gossip.start_wait = std::chrono::milliseconds(50);
  auto waiting = std::make_unique<WaitingNode>(config);
  const std::string taken = "cannot listen on 127.0.0.1 port " + std::to_string(ports[0]) +
                            ": Address already in use by process " + std::to_string(::getpid());
  CHECK_THROWS_WITH(WaitingNode{config}, doctest::Contains(taken.c_str()));
  CHECK(ask().error == "");
  test::RawSocket open(ports[0]);  // and a caller that says nothing holds nothing up
  waiting.reset();
  test::VectorNode node(config, 8);
  node.gossip().start();
  CHECK(nlohmann::json::parse(ask().json)["state"] == "training");
}

TEST_CASE_FIXTURE(Waiting, "a node that waits answers those that hold the key alone") {
  const test::SecretFolder folder;
  create_private_file(folder.path("ours"), key_file_text({new_key()}));
  create_private_file(folder.path("theirs"), key_file_text({new_key()}));
  config.security.mode = "psk";
  config.security.key_file = folder.path("ours").string();
  const WaitingNode waiting(config);
  CHECK(ask("test", make_security(config).get()).error == "");
  CHECK(ask().error != "");
  Config other = config;
  other.security.key_file = folder.path("theirs").string();
  CHECK(ask("test", make_security(other).get()).error ==
        "has another cluster key than this process (security.key_file)");
}

}  // namespace dpwa
