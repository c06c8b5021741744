#include "dpwa/engine/trainer_state.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "interpolation/registry.h"

using namespace std::chrono_literals;
using namespace dpwa;

namespace {

struct Trainer {
  Random random{1};
  TrainerState state;

  explicit Trainer(TrainerOptions options = {})
      : state(std::move(options),
              GuardedInterpolation(interpolation_registry().make("constant", {}), 0.5), random) {
    state.replace(4, 7);
  }
};

Arrival from_peer(double clock, std::uint64_t lineage = 7) {
  Arrival arrival;
  arrival.outcome = Outcome::mixed;
  arrival.peer_name = "w2";
  arrival.progress.clock = clock;
  arrival.progress.lineage = lineage;
  arrival.own.clock = 4;
  arrival.stats.squared_distance = 9;
  arrival.bytes = 100;
  return arrival;
}

constexpr TimePoint now{1h};

// Nodes w2, w3 and w4 of the cluster file.
Surroundings three_others() {
  Surroundings others;
  others.members.resize(3);
  for (const char* name : {"w2", "w3", "w4"}) {
    Member& member = others.members[static_cast<std::size_t>(name[1] - '2')];
    member.claim.name = name;
    member.listed = true;
  }
  return others;
}

}  // namespace

TEST_CASE("a blend moves the clock and fills the report of its step alone") {
  Trainer trainer;
  CHECK(trainer.state.publish().clock == 5);
  const Arrival arrival = from_peer(10);
  REQUIRE(trainer.state.absorb(arrival, {}, now) == Absorbed::blend);
  CHECK(trainer.state.blend(arrival, 1) == 0.5);
  CHECK(trainer.state.blended());
  const StepReport report = trainer.state.end_step(true, 3ms);
  CHECK(report.outcome == Outcome::mixed);
  CHECK(report.peer == "w2");
  CHECK(report.factor == 0.5);
  CHECK(report.staleness == -5);
  CHECK(report.distance == 3);
  CHECK(report.bytes == 100);
  CHECK(report.clock == 8);  // by half of the difference to the snapshot that was compared with
  CHECK(report.waited == 3ms);
  CHECK(report.pulls_ok == 1);
  CHECK_FALSE(trainer.state.blended());
  CHECK(trainer.state.end_step(true, {}).outcome == Outcome::pending);
  CHECK(trainer.state.end_step(false, {}).outcome == Outcome::skipped);
}

TEST_CASE("a lerp moves the clock towards the peer's, and a clip cuts the factor") {
  TrainerOptions options;
  options.by_delta = false;
  Trainer trainer(options);
  Arrival arrival = from_peer(10);
  arrival.factor_scale = 0.5;
  trainer.state.absorb(arrival, {}, now);
  CHECK(trainer.state.blend(arrival, 1) == 0.25);
  const StepReport report = trainer.state.end_step(false, {});
  CHECK(report.clipped);
  CHECK(trainer.state.take_lines().at(0).text.find("of 'w2' are farther away than usual") !=
        std::string::npos);
  trainer.state.absorb(arrival, {}, now);
  trainer.state.blend(arrival, 1);
  CHECK(trainer.state.take_lines().empty());
  CHECK(report.clock == 5.5);
}

TEST_CASE("blocks are asked for in turn, and one moves the clock by its share of the model") {
  TrainerOptions options;
  options.block_shares = {0.5, 0.25, 0.25};
  Trainer trainer(options);
  const RoundSpec first = trainer.state.plan_pull(trainer.random);
  REQUIRE(first.block);
  CHECK(trainer.state.plan_pull(trainer.random).block == first.block);  // it has not begun
  trainer.state.began(first);
  CHECK(trainer.state.plan_pull(trainer.random).block == (*first.block + 1) % 3);
  Arrival arrival = from_peer(12);
  arrival.block = 1;
  trainer.state.absorb(arrival, {}, now);
  trainer.state.blend(arrival, 1);
  const StepReport report = trainer.state.end_step(false, {});
  CHECK(report.clock == 5);  // 4 + (12 - 4) * 0.5 * 0.25
  CHECK(report.block == 1);
  CHECK(report.blocks == 3);
}

TEST_CASE("pulls begin at any moment of a step, and at once where a step waits for them") {
  Trainer spread;
  for (int step = 0; step < 2; ++step) spread.state.step_begins(now + step * 100ms);
  Duration longest{};
  for (int i = 0; i < 100; ++i)
    longest = std::max(longest, spread.state.plan_pull(spread.random).delay);
  CHECK(longest > 90ms);
  CHECK(longest < 100ms);
  spread.state.reload({.spread_pulls = false, .start_wait = 10s});
  CHECK(spread.state.plan_pull(spread.random).delay == Duration::zero());
}

TEST_CASE("a snapshot is fresh for a usual step, and for ever where steps wait for their pulls") {
  Trainer trainer;
  trainer.state.step_begins(now);
  CHECK_FALSE(trainer.state.fresh_for());
  trainer.state.step_begins(now + 100ms);
  CHECK(trainer.state.fresh_for() == 100ms);
  Trainer quick;
  for (int step = 0; step < 3; ++step) quick.state.step_begins(now + step * 300us);
  CHECK(quick.state.fresh_for() == TrainerState::least_fresh_for);
  trainer.state.reload({.spread_pulls = false, .start_wait = 10s});
  CHECK_FALSE(trainer.state.fresh_for());
}

TEST_CASE("another lineage is not blended, and said with a key that limits the line") {
  Trainer trainer;
  CHECK(trainer.state.absorb(from_peer(1e6, 8), three_others(), now) == Absorbed::refused);
  CHECK(trainer.state.end_step(false, {}).outcome == Outcome::rejected);
  const auto lines = trainer.state.take_lines();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].warning);
  CHECK(lines[0].text == "'w2' descends from other initial weights: not blended");
  CHECK(lines[0].limit == "w2 not blended");
  CHECK(trainer.state.lineage() == 7);
}

TEST_CASE("of two peers of a larger lineage the weights of the first are taken over") {
  Trainer trainer;
  Arrival arrival;
  arrival.outcome = Outcome::skipped;
  Progress theirs;
  theirs.lineage = 8;
  theirs.clock = 10;
  arrival.other_lineages = {{1, "w3", theirs}, {0, "w2", theirs}};
  CHECK(trainer.state.absorb(arrival, three_others(), now) == Absorbed::nothing);
  const RoundSpec round = trainer.state.plan_pull(trainer.random);
  CHECK(round.peer == PeerId{1});
  CHECK(round.exchange.replaces());
  const auto lines = trainer.state.take_lines();
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].text.ends_with("taking over its weights"));
  CHECK(lines[1].text.ends_with("not blended"));
  CHECK(trainer.state.plan_pull(trainer.random).exchange.blends());  // once
}

TEST_CASE("while no peer answers the steps say so, and warnings come ever more rarely") {
  Trainer trainer;
  Arrival nobody;
  nobody.outcome = Outcome::unreachable;
  nobody.alone = true;
  std::size_t warnings = 0;
  for (int second = 0; second <= 130; ++second) {
    CHECK(trainer.state.absorb(nobody, {}, now + std::chrono::seconds(second)) ==
          Absorbed::nothing);
    CHECK(trainer.state.end_step(true, {}).outcome == Outcome::unreachable);
    CHECK(trainer.state.end_step(true, {}).outcome == Outcome::unreachable);  // and not pending
    warnings += trainer.state.take_lines().size();
  }
  CHECK(warnings == 3);  // after 10 s, 70 s, 130 s
  CHECK(trainer.state.alone_since() == now);
}
