#include <doctest/doctest.h>

#include <string>

#include "dpwa/net/status_query.h"
#include "test/dpwa/net/secure_nodes.h"
#include "test/support/eventually.h"

// Nodes with certificates, on real sockets.

namespace dpwa {
namespace {

using test::ClusterKey;
using test::greeting_of;
using test::NodeCertificate;
using test::secure_caller;
using test::secure_node;

struct Authorities {
  test::SecretFolder folder;
  test::TestAuthority ours{folder, "ours"};
  test::TestAuthority foreign{folder, "foreign"};
};

}  // namespace

TEST_CASE_FIXTURE(Authorities, "nodes whose certificates name them pull from each other") {
  const NodeCertificate w1(ours, "w1");
  const NodeCertificate w2(ours, "w2");
  constexpr std::size_t elements = 100'000;
  const auto node = secure_node(w1.open(ours), elements);
  const auto caller = secure_caller(node->port(), w2.open(ours), elements);
  CHECK(caller->pull().outcome == Outcome::mixed);
  node->publish(2);
  CHECK(caller->pull().outcome == Outcome::mixed);
  CHECK(caller->landed().back() == 2);
  CHECK(node->local().traffic.security_failures == 0);
}

TEST_CASE_FIXTURE(Authorities, "a caller whose certificate is not accepted is told why") {
  const NodeCertificate w1(ours, "w1");
  const auto node = secure_node(w1.open(ours));
  std::shared_ptr<Security> security;
  std::string reason;
  SUBCASE("of a foreign authority") {
    security = NodeCertificate(foreign, "w2").open(ours);
    reason = "does not accept this node's certificate: unknown CA";
  }
  SUBCASE("with the name of another node") {
    security = NodeCertificate(ours, "w3").open(ours);
    reason = "the certificate of node 'w2' is for 'w3'";
  }
  SUBCASE("none, but a cluster key") {
    security = ClusterKey().open();
    reason = "shows a certificate, not the cluster key (is its security mode mtls?)";
  }
  SUBCASE("none") {
    reason = "the called node speaks TLS only (security.mode)";
  }
  const auto caller = secure_caller(node->port(), security);
  CHECK(greeting_of(*caller) == reason);
  CHECK(caller->pull().outcome == Outcome::rejected);
  CHECK(test::eventually([&] { return node->local().traffic.security_failures == 2; }));
  CHECK(node->local().traffic.snapshots_served == 0);
}

TEST_CASE_FIXTURE(Authorities,
                  "a called node whose certificate is not accepted gets no parameters") {
  const NodeCertificate w2(ours, "w2");
  std::shared_ptr<Security> security;
  std::string reason;
  SUBCASE("of a foreign authority") {
    security = NodeCertificate(foreign, "w1").open(ours);
    reason = "shows a certificate that is not accepted: unable to get local issuer certificate";
  }
  SUBCASE("with the name of another node") {
    security = NodeCertificate(ours, "w3").open(ours);
    reason = "shows a certificate for 'w3'";
  }
  SUBCASE("none, but a cluster key") {
    security = ClusterKey().open();
    reason = "accepts no certificate of this node (is its security mode psk?)";
  }
  const auto node = secure_node(security);
  const auto caller = secure_caller(node->port(), w2.open(ours));
  CHECK(greeting_of(*caller) == reason);
  CHECK(caller->pull().outcome == Outcome::rejected);
  CHECK(caller->local().traffic.security_failures == 2);
}

TEST_CASE_FIXTURE(Authorities,
                  "a certificate that has expired since the start is refused by both") {
  const NodeCertificate lasting(ours, "w2");
  const NodeCertificate also_lasting(ours, "w1");
  constexpr long seconds = 5;  // to start in
  const auto called = NodeCertificate(ours, "w1", seconds).open(ours);
  const NodeCertificate caller_files(ours, "w2", seconds);
  const auto calls = caller_files.open(ours);
  REQUIRE(test::eventually([&] {
    const auto error = calls->reload();
    return error && error->ends_with("node.pem: has expired; accepted: one that is valid now");
  }));
  const auto expired = secure_node(called);
  const auto caller = secure_caller(expired->port(), lasting.open(ours));
  CHECK(greeting_of(*caller) ==
        "shows a certificate that is not accepted: certificate has expired");
  const auto node = secure_node(also_lasting.open(ours));
  const auto expired_caller = secure_caller(node->port(), calls);
  CHECK(greeting_of(*expired_caller) ==
        "does not accept this node's certificate: certificate expired");
}

TEST_CASE_FIXTURE(Authorities,
                  "an observer needs a certificate of the authority, of whatever name") {
  const NodeCertificate w1(ours, "w1");
  const auto node = secure_node(w1.open(ours));
  const std::vector<PeerAddress> nodes{{"w1", {"127.0.0.1"}, node->port()}};
  const auto ask = [&](const NodeCertificate& shown) {
    return query_status("test", nodes, test::patience, shown.open(ours).get()).front();
  };
  CHECK(ask(NodeCertificate(ours, "operator")).json == "{}");
  CHECK(ask(NodeCertificate(foreign, "operator")).error ==
        "does not accept this node's certificate: unknown CA");
}

}  // namespace dpwa
