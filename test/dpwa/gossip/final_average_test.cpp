#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "dpwa/node/node.h"
#include "test/support/at_once.h"
#include "test/support/log_file.h"
#include "test/support/vector_cluster.h"

namespace dpwa {

using namespace std::chrono_literals;

TEST_CASE("the final average waits for a snapshot buffer, and says so when none becomes free") {
  for (const bool released : {true, false}) {
    CAPTURE(released);
    const test::LogFile log;
    test::VectorCluster cluster(2, 8, [](Config& config) {
      config.gossip.finish_wait = 1s;
      config.gossip.timeout = 200ms;
    });
    cluster.start();
    Gossip& first = cluster.at(0).gossip();
    SnapshotStore& store = first.node().local().store;
    std::vector<std::shared_ptr<const Snapshot>> held;  // two of three, by slow readers
    for (int i = 0; i < 2; ++i) {
      first.publish([] { return 1.0; });
      held.push_back(store.latest());
    }
    bool averaged = false;
    test::at_once(3, [&](std::size_t i) {
      if (i == 0) averaged = first.finish().averaged;
      if (i == 1) cluster.at(1).gossip().finish();
      if (i == 2 && released) {
        while (first.node().local().state != wire::NodeState::finished) std::this_thread::yield();
        held.clear();
      }
    });
    CHECK(averaged == released);
    CHECK(log.has("every snapshot buffer is held by a reader") == !released);
  }
}

}  // namespace dpwa
