#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "dpwa/net/free_ports.h"
#include "dpwa/node/node.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::VectorNode;

Config impatient(std::size_t nodes) {
  Config config = test::loopback_config(net::free_ports(nodes), 0);
  config.gossip.start_wait = 50ms;
  config.gossip.finish_wait = 200ms;
  config.gossip.timeout = 100ms;
  return config;
}

}  // namespace

TEST_CASE("a node that is alone says so at the start, in its steps and at the end") {
  const test::LogFile log;
  VectorNode node(impatient(3), 8);
  node.gossip().start();
  CHECK(log.count("started alone, without 'w2', 'w3'") == 1);
  std::map<Outcome, int> outcomes;
  StepReport last;
  // Also once both peers count as dead, and nobody is asked any more.
  const auto out = [&] {
    last = (node.gossip().update_send([] { return 1.0; }), node.gossip().update_wait());
    ++outcomes[last.outcome];
    const auto members = node.gossip().node().local().members->all();
    return std::ranges::all_of(
        members, [](const Member& member) { return member.status() == MemberStatus::dead; });
  };
  REQUIRE(test::eventually(out));
  for (int i = 0; i < 200; ++i) out();
  const int steps = outcomes[Outcome::unreachable] + outcomes[Outcome::pending];
  CHECK(outcomes[Outcome::pending] <= 20);  // until both have failed for the first time
  CHECK(outcomes.size() == 2);
  CHECK(last.outcome == Outcome::unreachable);
  CHECK(last.pulls_ok == 0);
  CHECK(last.pulls_failed > 20);
  CHECK(static_cast<int>(last.pulls_failed) <= steps);
  const FinishReport report = node.gossip().finish();
  CHECK_FALSE(report.averaged);
  CHECK(report.participants == 1);
  CHECK(report.enough);
  CHECK(log.count("ends alone: no peer has answered for") == 1);
  CHECK(log.count("final average over 1 of 3 nodes") == 1);
}

}  // namespace dpwa
