#include "dpwa/net/host_names.h"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "dpwa/base/resolve_host.h"
#include "dpwa/gossip/gossip_node.h"
#include "dpwa/net/free_ports.h"
#include "dpwa/net/members.h"
#include "dpwa/net/status_query.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"
#include "test/support/moving_host.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using net::ResolvePauses;
using test::MovingHost;
using test::PullingNode;
using test::ServedNode;

ServerOptions bound_to(const std::string& address, std::uint16_t port) {
  ServerOptions options;
  options.bind_address = address;
  options.port = port;
  return options;
}

// An address at which the system answers no connection, like a machine that is gone.
class FullQueue {
 public:
  FullQueue(const std::string& address, std::uint16_t port) : acceptor_(io_) {
    namespace ip = boost::asio::ip;
    const ip::tcp::endpoint endpoint(ip::make_address(address), port);
    acceptor_.open(endpoint.protocol());
    acceptor_.bind(endpoint);
    acceptor_.listen(0);
    for (int i = 0; i < 4; ++i) {
      callers_.emplace_back(io_, endpoint.protocol());
      callers_.back().async_connect(endpoint, [](const boost::system::error_code&) {});
    }
  }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::vector<boost::asio::ip::tcp::socket> callers_;
};

}  // namespace

TEST_CASE("a name is resolved again after a pause, which grows while the answers bring nothing") {
  ResolvePauses pauses;
  TimePoint now{};
  CHECK(pauses.begin("a", now));
  CHECK_FALSE(pauses.begin("a", now + 1h));  // the resolver may block for long
  pauses.answered("a", false, now);
  for (const Duration pause : {1s, 2s, 4s, 8s, 10s, 10s}) {
    CHECK_FALSE(pauses.begin("a", now + pause - 1ms));
    now += pause;
    CHECK(pauses.begin("a", now));
    pauses.answered("a", false, now);
  }
  now += 10s;
  CHECK(pauses.begin("a", now));
  pauses.answered("a", true, now);
  CHECK_FALSE(pauses.begin("a", now + 999ms));
  CHECK(pauses.begin("a", now + 1s));
}

TEST_CASE("a peer that fails after a long time is looked for at once, and again after a second") {
  ResolvePauses pauses;
  TimePoint now{};
  for (int i = 0; i < 10; ++i, now += 10s) {
    CHECK(pauses.begin("a", now));
    pauses.answered("a", false, now);
  }
  now += 1h;
  CHECK(pauses.begin("a", now));
  pauses.answered("a", false, now);
  CHECK(pauses.begin("a", now + 1s));
}

TEST_CASE("only so many names are under way at once") {
  ResolvePauses pauses;
  const TimePoint now{};
  for (std::size_t i = 0; i < ResolvePauses::most_at_once; ++i)
    CHECK(pauses.begin(std::to_string(i), now));
  CHECK_FALSE(pauses.begin("more", now));
  pauses.answered("0", false, now);
  CHECK(pauses.begin("more", now));
}

TEST_CASE("addresses that do not answer come last, and each is some time the very last") {
  net::AddressOrder order;
  using Addresses = std::vector<std::string>;
  CHECK(order.sorted({"a", "b", "c"}, 1) == Addresses{"a", "b", "c"});
  order.tried("a", 1, false);
  CHECK(order.sorted({"a", "b", "c"}, 1) == Addresses{"b", "c", "a"});
  CHECK(order.sorted({"a", "b", "c"}, 2) == Addresses{"a", "b", "c"});
  order.tried("b", 1, false);
  CHECK(order.sorted({"a", "b", "c"}, 1) == Addresses{"c", "b", "a"});
  order.tried("c", 1, false);
  CHECK(order.sorted({"a", "b"}, 1) == Addresses{"b", "a"});
  order.tried("b", 1, false);
  order.tried("a", 1, false);
  CHECK(order.sorted({"a", "b"}, 1) == Addresses{"a", "b"});
  order.tried("c", 1, true);
  CHECK(order.sorted({"a", "b", "c"}, 1) == Addresses{"c", "a", "b"});
}

TEST_CASE("a peer is reached whose first address does not answer, within one deadline") {
  const ServedNode node(16, bound_to("127.0.0.1", 0));
  const FullQueue silent("127.0.0.3", node.port());
  const std::vector<PeerAddress> nodes{{"w1", {"127.0.0.3", "127.0.0.1"}, node.port()}};
  CHECK(query_status("test", nodes, test::patience).front().error == "");
}

TEST_CASE("a peer without a host name keeps its addresses, one with a name has the last answer") {
  MovingHost name("names.test", "127.0.0.8");
  CHECK(net::addresses_now({"w1", {"127.0.0.1"}, 1}) == std::vector<std::string>{"127.0.0.1"});
  const PeerAddress peer{"w1", {"127.0.0.1"}, 1, "names.test"};
  CHECK(net::addresses_now(peer) == peer.addresses);
  resolve_host("names.test");
  CHECK(net::addresses_now(peer) == std::vector<std::string>{"127.0.0.8"});
  name.move("");  // a failure is no news
  resolve_host("names.test");
  CHECK(net::addresses_now(peer) == std::vector<std::string>{"127.0.0.8"});
  const int asked = name.asked();
  net::resolve_again({"w1", {"127.0.0.1"}, 1, "127.0.0.1"});
  net::resolve_again({"w1", {"127.0.0.1"}, 1});
  CHECK(name.asked() == asked);
}

TEST_CASE("a peer that has moved to another address is pulled from there") {
  const test::LogFile log;
  MovingHost name("moved.test", "127.0.0.1");
  auto first = std::make_unique<ServedNode>(16, bound_to("127.0.0.1", 0));
  const std::uint16_t port = first->port();
  PullingNode node({{"w1", {"127.0.0.1"}, port, "moved.test"}});
  CHECK(node.pull().outcome == Outcome::mixed);
  first.reset();
  ServedNode second(16, bound_to("127.0.0.2", port));
  second.publish(2.0F);  // news
  name.move("127.0.0.2");
  CHECK(test::eventually([&] { return node.pull().outcome == Outcome::mixed; }));
  CHECK(log.has("host moved.test is now at 127.0.0.2, before at 127.0.0.1"));
}

TEST_CASE("a peer whose address another node has by now is looked for as well") {
  MovingHost name("taken.test", "127.0.0.2");
  const auto port = net::free_ports(1).front();
  const ServedNode taker(16, bound_to("127.0.0.1", port));  // as w1
  PullingNode node({{"w3", {"127.0.0.1"}, port, "taken.test"}});
  CHECK(node.pull().outcome != Outcome::mixed);
  CHECK(test::eventually([&] {
    node.pull();
    return name.asked() > 0;
  }));
}

TEST_CASE("a resolver that does not answer holds no pull up, and ends no later than the process") {
  std::promise<void> release;
  const ResolverDouble silent([held = release.get_future().share()](const std::string&) {
    held.wait();
    return Resolved{{}, "too late"};
  });
  PullingNode node({{"w1", {"127.0.0.1"}, net::free_ports(1).front(), "silent.test"}});
  for (int i = 0; i < 3; ++i) CHECK(node.pull().outcome == Outcome::unreachable);
  node.stop();
  release.set_value();
}

TEST_CASE("the status of a node that has moved is asked for at its new address") {
  MovingHost name("asked.test", "127.0.0.2");
  const auto port = net::free_ports(1).front();
  const ServedNode there(16, bound_to("127.0.0.2", port));
  const std::vector<PeerAddress> nodes{{"w1", {"127.0.0.1"}, port, "asked.test"}};
  CHECK(test::eventually(
      [&] { return query_status("test", nodes, test::patience).front().error.empty(); }));
}

TEST_CASE("the membership takes up where a host name of the file leads to") {
  MovingHost name("listed.test", "127.0.0.2");
  const auto claim_of = [](const std::string& seed, const std::string& address) {
    MemberClaim claim;
    claim.name = seed;
    claim.addresses = {address};
    claim.port = 7001;
    return claim;
  };
  Members members(claim_of("w1", "127.0.0.1"),
                  {claim_of("w2", "127.0.0.9"), claim_of("w3", "127.0.0.3")}, {}, 1);
  members.follow("w2", "listed.test");
  members.follow("w3", "127.0.0.3");
  CHECK(members.host_of("w2") == "listed.test");
  CHECK(members.host_of("w3") == "");
  members.tick();
  CHECK(members.find("w2")->addresses == std::vector<std::string>{"127.0.0.9"});
  resolve_host("listed.test");
  members.tick();
  CHECK(members.find("w2")->addresses == std::vector<std::string>{"127.0.0.2"});
  CHECK(members.find("w2")->port == 7001);
  CHECK(members.find("w3")->addresses == std::vector<std::string>{"127.0.0.3"});
  // A reload that names an address instead.
  members.list(claim_of("w2", "127.0.0.9"));
  members.follow("w2", "127.0.0.9");
  members.tick();
  CHECK(members.find("w2")->addresses == std::vector<std::string>{"127.0.0.9"});
}

TEST_CASE("a node joins by a name that becomes known while it tries") {
  MovingHost name("seed.test", "");
  const auto ports = net::free_ports(2);
  test::VectorNode runs(test::loopback_config({ports[0]}, 0), 8);
  runs.gossip().start();
  Config config = test::loopback_config({ports[1]}, 0);
  config.nodes[0].name = config.self = "w9";
  NodeEntry seed;
  seed.host = "seed.test";
  seed.port = ports[0];
  config.join = {seed};
  test::VectorNode joins(config, 8);
  test::at_once(2, [&](std::size_t part) {
    if (part == 0) {
      CHECK_NOTHROW(joins.gossip().start());
    } else {
      CHECK(test::eventually([&] { return name.asked() > 0; }));
      name.move("127.0.0.1");
    }
  });
  CHECK(joins.gossip().node().local().members->is_listed("w1"));
}

}  // namespace dpwa
