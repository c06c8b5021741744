#include "dpwa/node/endpoint.h"

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

// w1 of two nodes, which nothing but observers may call.
struct Observed {
  std::vector<std::uint16_t> ports = net::free_ports(2);
  Config config = test::loopback_config(ports, 0);

  std::unique_ptr<Endpoint> start() const {
    auto endpoint = std::make_unique<Endpoint>(config, /*incarnation=*/5);
    endpoint->start();
    return endpoint;
  }
  StatusAnswer ask(const std::string& cluster = "test", const Security* security = nullptr) const {
    const PeerAddress address{"w1", {"127.0.0.1"}, ports[0]};
    return query_status(cluster, {address}, test::patience, security).at(0);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Observed, "an endpoint answers observers again and again, by its name alone") {
  const auto endpoint = start();
  CHECK(endpoint->port() == ports[0]);
  for (int i = 0; i < 2; ++i) {
    const StatusAnswer answer = ask();
    REQUIRE(answer.error == "");
    const auto status = nlohmann::json::parse(answer.json);
    CHECK(status["node"] == "w1");
    CHECK(status["incarnation"] == 5);
    CHECK(status["backend"] == "gossip");
    CHECK(status["state"] == "joining");
    CHECK(status["connections_accepted"] == i + 1);
    CHECK(status["clock"].is_null());
    CHECK(status["steps"]["count"] == 0);
    CHECK(status["host"]["processors"] >= 1);
    CHECK(status["process"]["cpu_s"] > 0);
    CHECK(status["events"].is_array());
    REQUIRE(status["connections"].size() >= 1);  // that of the observer
    CHECK(status["connections"][0]["host"] == "127.0.0.1");
  }
  CHECK(ask("other").error == "node 'w1' belongs to cluster 'test', not 'other'");
}

TEST_CASE_FIXTURE(Observed,
                  "an endpoint states what its back end notes, and nothing of snapshots") {
  const auto endpoint = start();
  endpoint->local().state = wire::NodeState::ready;
  endpoint->local().notes.set("clock", "41.5");
  endpoint->local().notes.set("waits_for", R"("w2")");
  auto status = nlohmann::json::parse(ask().json);
  CHECK(status["state"] == "training");
  CHECK(status["clock"] == 41.5);
  CHECK(status["waits_for"] == "w2");
  for (const char* of_gossip : {"peers", "members", "published", "model_bytes", "pulls_ok"})
    CHECK_FALSE(status.contains(of_gossip));
}

TEST_CASE_FIXTURE(Observed, "a node that calls an endpoint for observers is hung up on silently") {
  const auto endpoint = start();
  test::RawSocket caller(ports[0]);
  caller.send(wire::encode(test::sound_hello(), 1));
  CHECK_FALSE(caller.read_frame().has_value());
  CHECK(caller.ended_by_other_side());
  test::RawSocket stranger(ports[0]);
  stranger.send(std::string(64, '?'));
  CHECK(stranger.ended_by_other_side());
  CHECK(ask().error == "");
}

TEST_CASE_FIXTURE(Observed, "a node whose peer has an endpoint alone starts without it") {
  config.gossip.start_wait = std::chrono::milliseconds(50);
  Config other = test::loopback_config(ports, 1);
  other.gossip.start_wait = config.gossip.start_wait;
  const auto endpoint = start();
  test::VectorNode node(other, 8);
  node.gossip().start();
  node.gossip().update_send([] { return 0.5; });
  CHECK(node.gossip().update_wait().pulls_ok == 0);
}

TEST_CASE_FIXTURE(Observed, "the address of an endpoint is taken until its end, and free then") {
  config.gossip.start_wait = std::chrono::milliseconds(50);
  auto endpoint = start();
  const std::string taken = "cannot listen on 127.0.0.1 port " + std::to_string(ports[0]) +
                            ": Address already in use by process " + std::to_string(::getpid());
  CHECK_THROWS_WITH(start(), doctest::Contains(taken.c_str()));
  CHECK(ask().error == "");
  test::RawSocket open(ports[0]);  // and a caller that says nothing holds nothing up
  endpoint.reset();
  test::VectorNode node(config, 8);
  node.gossip().start();
  CHECK(nlohmann::json::parse(ask().json)["state"] == "training");
}

TEST_CASE_FIXTURE(Observed, "an endpoint answers those that hold the key alone") {
  const test::SecretFolder folder;
  create_private_file(folder.path("ours"), key_file_text({new_key()}));
  create_private_file(folder.path("theirs"), key_file_text({new_key()}));
  config.security.mode = "psk";
  config.security.key_file = folder.path("ours").string();
  const auto endpoint = start();
  CHECK(ask("test", make_security(config).get()).error == "");
  CHECK(ask().error != "");
  Config other = config;
  other.security.key_file = folder.path("theirs").string();
  CHECK(ask("test", make_security(other).get()).error ==
        "has another cluster key than this process (security.key_file)");
}

}  // namespace dpwa
