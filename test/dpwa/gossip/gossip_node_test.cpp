#include "dpwa/gossip/gossip_node.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/config/reload.h"
#include "dpwa/gossip/contacts.h"
#include "dpwa/net/free_ports.h"
#include "dpwa/wire/messages.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

namespace dpwa {

TEST_CASE("a reload that changes timeout_ms changes how long a reply may take") {
  constexpr std::size_t elements = 4 << 20;  // 16 MiB: more than the sockets' buffers take
  const auto ports = net::free_ports(2);
  Config config = test::loopback_config(ports, 0);
  config.gossip.timeout = std::chrono::hours(1);
  GossipNode::Options options;
  options.incarnation = 7;
  options.allocate = [](std::size_t bytes, bool) { return test::plain_memory(bytes); };
  GossipNode node(config, test::vector_manifest(elements), std::move(options));
  node.start();
  SnapshotStore& store = node.local().store;
  const auto publish = [&store](std::uint64_t version) {
    Progress progress;
    progress.version = version;
    progress.lineage = 5;
    progress.clock = 1;
    store.publish(*store.begin(), progress);
  };
  const auto free_buffers = [&store] {
    std::vector<SnapshotStore::Writer> held;
    while (auto writer = store.begin()) held.push_back(std::move(*writer));
    return held.size();
  };
  publish(1);
  node.local().state = wire::NodeState::ready;

  Config fresh = config;
  fresh.gossip.timeout = std::chrono::milliseconds(100);
  node.take_up(plan_reload(config, fresh));
  test::RawSocket stalled(ports[0], /*receive_buffer=*/4096);
  REQUIRE(test::introduce(stalled, elements));
  wire::Pull pull;
  pull.deadline_ms = 86'400'000;
  REQUIRE(stalled.send(wire::encode(pull, 2)));
  REQUIRE(stalled.read(wire::header_bytes));
  publish(2);
  // The reply of version 1 is given up, and its buffer with it.
  CHECK(test::eventually([&] { return free_buffers() == 2; }));
}

TEST_CASE("a node that calls often is reported once, with its highest incarnation") {
  Contacts contacts;
  CHECK(contacts.add("w2", 5));
  for (int call = 0; call < 1000; ++call) CHECK_FALSE(contacts.add("w2", 7));
  CHECK_FALSE(contacts.add("w2", 6));
  CHECK_FALSE(contacts.add("w3", 0));
  CHECK(contacts.take() == std::map<std::string, std::uint64_t>{{"w2", 7}, {"w3", 0}});
  CHECK(contacts.take().empty());
  CHECK(contacts.add("w2", 5));
}

TEST_CASE("callers under ever new names do not pile up") {
  Contacts contacts;
  for (int call = 0; call < 5000; ++call) contacts.add(std::to_string(call), 1);
  CHECK_FALSE(contacts.add("0", 2));
  const auto waiting = contacts.take();
  CHECK(waiting.size() == Contacts::max_names);
  CHECK(waiting.at("0") == 2);
}

}  // namespace dpwa
