#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "test/dpwa/engine/byzantine_cluster.h"

// The attack program: each lie against honest nodes on a virtual clock. -tc="*attack program*"
// prints a line of comma-separated values for each: policy, honest nodes, lie, worst distance to
// the optimum, and for each step blends and pulls of the liar. To see what a rule is for, remove it
// and compare.

namespace dpwa::world::testing {
namespace {

void scale(Snapshot& snapshot, double factor) {
  for (double& value : snapshot.model.values) value *= factor;
}

struct Attack {
  const char* name;
  Lie lie;
  bool restarts = false;    // calls as a new process in each round
  bool from_first = false;  // else it is honest for 50 rounds
  bool slight = false;      // within 5 tau: clip blends a part of it
  bool sound_at_times = false;
};

std::vector<Attack> attacks() {
  const Lie honest = [](Snapshot&, std::uint64_t) {};
  const Lie far = [](Snapshot& snapshot, std::uint64_t) { scale(snapshot, 100); };
  const Lie inverted = [](Snapshot& snapshot, std::uint64_t) { scale(snapshot, -5); };
  const Lie not_finite = [](Snapshot& snapshot, std::uint64_t) {
    snapshot.model.values[0] = std::numeric_limits<double>::quiet_NaN();
  };
  const Lie replay = [](Snapshot& snapshot, std::uint64_t) { snapshot.progress.version = 1; };
  // Sound now and then.
  const Lie flaky = [](Snapshot& snapshot, std::uint64_t nth) {
    if (nth % 3 != 2) scale(snapshot, 100);
  };
  // Comes nearer, as one does that was suspended.
  const Lie nearing = [](Snapshot& snapshot, std::uint64_t nth) {
    scale(snapshot, 20 * std::pow(0.85, static_cast<double>(nth % 12)));
  };
  const Lie clock = [](Snapshot& snapshot, std::uint64_t nth) {
    scale(snapshot, 100);
    snapshot.progress.clock += 1e6 * static_cast<double>(nth + 1);
  };
  const Lie slight = [](Snapshot& snapshot, std::uint64_t) { scale(snapshot, 1.3); };
  return {{.name = "none", .lie = honest, .sound_at_times = true},
          {"x 100", far},
          {"x 100 with restarts", far, true},
          {"x 100 from the first", far, false, true},
          {"x -5 from the first", inverted, false, true},
          {"not finite", not_finite},
          {"not finite with restarts", not_finite, true},
          {"replay", replay},
          {.name = "flaky", .lie = flaky, .sound_at_times = true},
          {"nearing", nearing},
          {"clock", clock},
          {.name = "x 1.3", .lie = slight, .slight = true}};
}

struct Harm {
  double error = 0;  // worst
  double blends = 0;
  double pulls_of_liar = 0;
};

Harm harm_of(const Attack& attack, std::size_t honest, DistancePolicy policy) {
  ByzantineCluster cluster(honest, policy);
  if (!attack.from_first) cluster.run(50, 1);
  cluster.set_restarting(attack.restarts);
  cluster.count_anew();
  cluster.run(300, attack.lie);
  Harm result;
  for (int round = 0; round < 100; ++round) {
    cluster.run(1, attack.lie);
    result.error = std::max(result.error, cluster.error());
  }
  result.blends = cluster.blends();
  result.pulls_of_liar = cluster.pulls_of_liar();
  return result;
}

TEST_CASE("attack program: no lie but a slight one moves honest nodes, or costs them blends") {
  for (const auto policy : {DistancePolicy::clip, DistancePolicy::refuse}) {
    for (const std::size_t honest : {3, 8}) {
      const double peace = harm_of(attacks().front(), honest, policy).error;
      for (const Attack& attack : attacks()) {
        CAPTURE(attack.name);
        CAPTURE(honest);
        CAPTURE(static_cast<int>(policy));
        const Harm result = harm_of(attack, honest, policy);
        std::ostringstream row;
        row << (policy == DistancePolicy::clip ? "clip," : "refuse,") << honest << ','
            << attack.name << ',' << result.error << ',' << result.blends << ','
            << result.pulls_of_liar;
        MESSAGE(row.str());
        CHECK(result.blends > 0.99);
        if (!attack.slight || policy == DistancePolicy::refuse) CHECK(result.error < 1.2 * peace);
        // At first there is no bound that could be far exceeded.
        const double most = attack.from_first ? 0.1 : 0.05;
        if (!attack.slight && !attack.sound_at_times) CHECK(result.pulls_of_liar < most);
      }
    }
  }
}

}  // namespace
}  // namespace dpwa::world::testing
