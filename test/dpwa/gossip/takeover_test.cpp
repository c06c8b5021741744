#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "test/support/log_file.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

using test::VectorCluster;
using test::VectorNode;

// Steps wait for their pulls.
void in_step(Config& config) {
  config.gossip.step_budget = config.gossip.timeout;
}

StepReport step_of(VectorNode& node) {
  node.gossip().update_send([] { return 1.0; });
  return node.gossip().update_wait();
}

std::uint64_t lineage_of(VectorNode& node) {
  return node.gossip().resume_state().lineage;
}

}  // namespace

TEST_CASE("after a split has healed real nodes come to one lineage, that of more of them") {
  struct Split {
    std::vector<double> clocks;  // of each node; the sign tells the side
    double winner;               // its sign; 0: either
  };
  for (const Split& split :
       {Split{{90, 80, -7, -6}, 1}, Split{{5, 4, -60, -70}, -1}, Split{{5, 6, 7, -1000}, 1}}) {
    const test::LogFile log;
    VectorCluster cluster(4, 64, in_step);
    cluster.start();
    for (std::size_t i = 0; i < 4; ++i) {
      const double clock = split.clocks[i];
      cluster.at(i).gossip().restore({std::abs(clock), clock > 0 ? 50U : 70U, 1});
      for (float& value : cluster.at(i).values()) value = clock > 0 ? 1.0F : -1.0F;
    }
    // Else the first to step would hear from all others at once that they descend from the start.
    for (std::size_t i = 0; i < 4; ++i) cluster.at(i).gossip().publish([] { return 1.0; });
    const auto agreed = [&] {
      for (std::size_t i = 1; i < 4; ++i)
        if (lineage_of(cluster.at(i)) != lineage_of(cluster.at(0))) return false;
      return true;
    };
    int rounds = 0;
    for (; rounds < 300 && !agreed(); ++rounds)
      for (std::size_t i = 0; i < 4; ++i) step_of(cluster.at(i));
    CHECK(agreed());
    CHECK(lineage_of(cluster.at(0)) == (split.winner > 0 ? 50U : 70U));
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(cluster.at(i).values()[3] == (split.winner > 0 ? 1.0F : -1.0F));
    CHECK(log.count("more nodes of the file descend from these") <= 2);
  }
}

}  // namespace dpwa
