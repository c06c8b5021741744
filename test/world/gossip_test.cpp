// Gossip averaging on random schedules of faults, from the start to the final average: weights of
// different origins never mix, trained ones are not given up for new ones, and once the faults are
// over all nodes train together and end with one model.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "test/support/sanitized.h"
#include "test/world/gossip_member.h"
#include "test/world/schedule.h"
#include "test/world/seeds.h"

namespace dpwa::world::testing {
namespace {

using namespace std::chrono_literals;

class Run {
 public:
  Run(const Schedule& schedule, std::uint64_t seed)
      : schedule_(schedule),
        ends_in_faults_(seed % 3 == 0),
        last_joins_(seed % 4 == 1 && schedule.machines > 2),
        by_seeds_(seed % 5 == 2),
        conducts_(schedule.machines),
        world_(derive_seed(seed, {3}), {.jitter = schedule.jitter, .disk = schedule.disk}) {
    options_.membership.suspect = 1s;
    options_.by_seeds = by_seeds_;
    // The first node is as fast as the others, or several times as slow.
    conducts_[0].step_time *= static_cast<Duration::rep>(1 + seed % 4 * 3);
    for (std::size_t i = 0; i < schedule.machines; ++i) {
      const std::string name = "w" + std::to_string(i);
      const bool is_seed = i < 2;
      if (by_seeds_ ? is_seed : !joins(i)) options_.names.push_back(name);
      world_.add_machine(name, [this, i](Environment& environment) {
        return std::make_unique<GossipMember>(environment, options_, checks_, conducts_[i]);
      });
    }
  }

  std::vector<std::string> problems() {
    suffer();
    if (ends_in_faults_) {
      end();
    } else {
      settle();
      if (checks_.problems().empty()) end();
    }
    return checks_.problems();
  }

  std::uint64_t events() const { return world_.events(); }
  const GossipChecks& checks() const { return checks_; }

 private:
  const GossipMember* node(std::size_t machine) const {
    return static_cast<const GossipMember*>(world_.program(machine));
  }
  bool joins(std::size_t machine) const {
    return !by_seeds_ && last_joins_ && machine + 1 == schedule_.machines;
  }
  bool has_ended(std::size_t machine) const {
    return machine < schedule_.machines && checks_.ends().contains(world_.name(machine));
  }

  void suffer() {
    std::vector<Fault> all = in_order(schedule_.starts, schedule_.faults);
    std::erase_if(all, [](const Fault& fault) {
      return fault.is_of_groups() && fault.kind != Fault::Kind::outage;
    });
    Duration now{};
    Traps none;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (ends_in_faults_ && i > all.size() * 2 / 3) options_.ends = true;
      world_.run(all[i].at - now);
      now = all[i].at;
      if (!has_ended(all[i].first)) happen(all[i], world_, none);
    }
  }

  void calm() {
    world_.heal();
    world_.set({.jitter = 1ms, .disk = 1ms});
    world_.run(3 * options_.timeout);  // what was decided before
  }

  void start_all() {
    for (std::size_t i = 0; i < schedule_.machines; ++i) {
      world_.wake(i);
      if (!has_ended(i)) world_.start(i);
    }
  }

  bool has_trained_weights() const {
    for (std::size_t i = 0; i < schedule_.machines; ++i) {
      if (world_.file(i, "checkpoint") != nullptr) return true;
      if (world_.runs(i) && node(i)->trains()) return true;
    }
    return false;
  }

  // All run, and hear one another: they train, descend from the same weights, and mix.
  void settle() {
    calm();
    const bool trained = has_trained_weights();
    const std::size_t lineages_before = checks_.lineages();
    start_all();
    world_.run(2 * options_.start_wait + 5 * options_.timeout);
    for (std::size_t i = 0; i < schedule_.machines; ++i)
      if (!world_.runs(i) || !node(i)->trains()) checks_.fail(world_.name(i) + " does not begin");
    if (trained && checks_.lineages() > lineages_before)
      checks_.fail("new weights are brought although there are some");
    world_.run(60s);
    if (checks_.problems().empty()) mixes();
  }

  void mixes() {
    std::vector<std::uint64_t> before;
    for (std::size_t i = 0; i < schedule_.machines; ++i) before.push_back(node(i)->blends());
    world_.run(5s);
    // The first one may have no more for the others.
    const auto steps = static_cast<std::uint64_t>(5s / conducts_[0].step_time);
    std::set<std::uint64_t> lineages;
    double least = 1e9;
    double most = 0;
    for (std::size_t i = 0; i < schedule_.machines; ++i) {
      lineages.insert(node(i)->lineage());
      least = std::min(least, node(i)->clock());
      most = std::max(most, node(i)->clock());
      if (node(i)->blends() - before[i] < steps / 3)
        checks_.fail(world_.name(i) + " hardly blends");
      if (node(i)->running().size() != schedule_.machines - 1)
        checks_.fail(world_.name(i) + " does not hold all others to run");
    }
    if (lineages.size() != 1)
      checks_.fail("weights of " + std::to_string(lineages.size()) + " origins");
    if (most - least > 60)
      checks_.fail("clocks from " + std::to_string(least) + " to " + std::to_string(most));
  }

  // Without faults all end with one mean over all.
  void end() {
    options_.ends = true;
    if (ends_in_faults_) {
      calm();
      start_all();
    }
    world_.run(4 * options_.finish_wait + 2 * options_.start_wait + 5 * options_.timeout);
    for (std::size_t i = 0; i < schedule_.machines; ++i) {
      const std::string& name = world_.name(i);
      const auto ended = checks_.ends().find(name);
      // One that joins finds nobody once the others are gone.
      if (ends_in_faults_ && joins(i)) continue;
      if (ended == checks_.ends().end()) {
        checks_.fail(name + " does not end");
      } else if (!ends_in_faults_ && ended->second != schedule_.machines) {
        checks_.fail(name + " ends with the mean over " + std::to_string(ended->second));
      }
    }
  }

  const Schedule& schedule_;
  const bool ends_in_faults_;
  const bool last_joins_;
  const bool by_seeds_;
  GossipOptions options_;
  GossipChecks checks_;
  std::vector<Conduct> conducts_;  // by machine
  World world_;
};

TEST_CASE("nodes that gossip mix one origin, and end as one once the faults are over") {
  const Seeds seeds(test::sanitized ? 6 : 60);
  std::uint64_t failed = 0;
  std::uint64_t events = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.end && failed < 5; ++seed) {
    const Schedule schedule = draw(seed);
    const auto again = [&](const Schedule& shorter) { return Run(shorter, seed).problems(); };
    Run run(schedule, seed);
    std::vector<std::string> problems = run.problems();
    events += run.events();
    if (problems.empty()) continue;
    ++failed;
    report(seed, schedule, std::move(problems), again);
  }
  MESSAGE(events << " events");
}

TEST_CASE("the same seed gives the same run of nodes that gossip") {
  for (const std::uint64_t seed : {2U, 3U}) {
    const Schedule schedule = draw(seed);
    Run one(schedule, seed);
    Run other(schedule, seed);
    one.problems();
    other.problems();
    CHECK(one.events() == other.events());
    CHECK(one.checks().means() == other.checks().means());
  }
}

}  // namespace
}  // namespace dpwa::world::testing
