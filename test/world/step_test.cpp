// Processes that train as backend collective does, and fall between the operations of a step.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/random.h"
#include "test/support/sanitized.h"
#include "test/world/schedule.h"
#include "test/world/seeds.h"
#include "test/world/step_member.h"

namespace dpwa::world::testing {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

struct StepSchedule : Schedule {
  StepOptions options;
};

struct Result {
  std::vector<std::string> problems;
  std::uint64_t events = 0;
  std::uint64_t steps = 0;
  std::uint64_t taken_over = 0;
  std::uint64_t repeated = 0;
  std::uint64_t discarded = 0;
  std::uint64_t ended = 0;
};

Trap draw_fall(Random& random) {
  using enum Trap::Does;
  static constexpr std::array does = {ends, ends, ends, stops, stops, hides};
  // Most of them in a step, some between the messages of the next view.
  const std::size_t kind =
      random.below(6) == 0 ? random.below(6) : first_moment + random.below(moments);
  return {kind, random.below(2) == 0 ? 0 : random.below(8), true,
          does.at(random.below(does.size())),
          milliseconds(random.below(random.below(2) == 0 ? 40 : 1500))};
}

Duration draw_gap(Random& random) {
  static constexpr std::array most = {5, 60, 400, 1500};  // ms
  return std::chrono::microseconds(random.below(1000 * most.at(random.below(most.size()))));
}

StepSchedule draw_steps(std::uint64_t seed) {
  using enum Fault::Kind;
  static constexpr std::array kinds = {
      scene,  scene, scene, scene, trap, trap,  trap, trap, trap,   trap,  kill,   start,  start,
      freeze, wake,  cut,   cut,   heal, split, mend, slow, behead, leave, outage, recover};
  Random random(derive_seed(seed, {3}));
  StepSchedule schedule;
  schedule.machines = 2 + random.below(4);
  schedule.jitter = milliseconds(1 + random.below(random.below(2) == 0 ? 3 : 30));
  schedule.disk = milliseconds(1 + random.below(random.below(2) == 0 ? 4 : 30));
  schedule.patience = milliseconds(60 + random.below(60));
  if (random.below(2) == 0) schedule.patience += 4 * (schedule.jitter + schedule.disk);
  schedule.options.patience = schedule.patience;
  schedule.options.compute = milliseconds(5 + random.below(80));
  schedule.options.buckets = 2 + random.below(3);
  schedule.options.keeps_checkpoints = random.below(2) == 0;
  for (std::size_t i = 0; i < schedule.machines; ++i) {
    schedule.options.names.push_back("w" + std::to_string(i));
    schedule.starts.push_back(milliseconds(random.below(50)));
  }
  Duration at = milliseconds(random.below(2000));
  const std::size_t count = 1 + random.below(12);
  for (std::size_t i = 0; i < count; ++i) {
    Fault fault;
    fault.at = at;
    fault.kind = kinds.at(random.below(kinds.size()));
    fault.first = random.below(schedule.machines);
    fault.second = random.below(schedule.machines);
    fault.side = random.below(1U << schedule.machines);
    fault.more = milliseconds(random.below(300));
    if (fault.kind == start && random.below(2) == 0) {
      // One goes and comes again, and another falls while it takes the state, or soon after.
      schedule.faults.push_back({.at = at, .kind = recover});
      at += 10 * schedule.patience;
      schedule.faults.push_back({.at = at, .kind = kill, .first = fault.first});
      Fault later{.at = at, .kind = trap, .first = random.below(schedule.machines)};
      Trap fall = draw_fall(random);
      fall.kind = first_moment + (random.below(3) == 0 ? random.below(2) : 5 + random.below(4));
      fall.after = random.below(3) == 0 ? random.below(8) : 0;
      later.traps[0] = {fall};
      schedule.faults.push_back(std::move(later));
      at += std::chrono::microseconds(random.below(20'000));
      fault.at = at;
    }
    if (fault.kind == scene) {
      // A view is decided, or not, between the operations of a step.
      using enum Trap::Does;
      fault.opening = random.below(3) == 0 ? Fault::Opening::loss : Fault::Opening::renew;
      fault.first = random.below(3) == 0 ? fault.first : 0;
      fault.traps[0] = {{random.below(5), random.below(2), random.below(2) == 0,
                         random.below(3) == 0 ? stops : ends, milliseconds(random.below(2000))}};
      fault.traps[1] = {draw_fall(random)};
      if (random.below(2) == 0) fault.traps[2] = {draw_fall(random)};
      if (random.below(2) == 0) {
        schedule.faults.push_back(fault);
        fault = {.at = at + std::chrono::microseconds(
                                random.below(random.below(2) == 0 ? 20'000 : 900'000)),
                 .kind = outage,
                 .side = fault.side};
        at = fault.at;
      }
    }
    if (fault.kind == trap) {
      // Of several, so that two fall at different operations.
      for (std::uint64_t others = random.below(3); others > 0; --others) {
        Fault other = fault;
        other.first = random.below(schedule.machines);
        other.traps[0] = {draw_fall(random)};
        schedule.faults.push_back(std::move(other));
      }
      fault.traps[0] = {draw_fall(random)};
      if (random.below(4) == 0) fault.traps[0].push_back(draw_fall(random));
    }
    schedule.faults.push_back(std::move(fault));
    at += draw_gap(random);
  }
  return schedule;
}

const StepMember* member_on(const World& world, std::size_t machine) {
  return static_cast<const StepMember*>(world.program(machine));
}

// All machines step in one group.
void settles(World& world, StepChecks& checks, Duration patience) {
  constexpr std::uint64_t steps = 3;
  const auto goes_on = [&] {
    const StepMember* const any = member_on(world, 0);
    for (std::size_t i = 0; i < world.machines(); ++i) {
      const StepMember* const member = member_on(world, i);
      if (member == nullptr || member->group() == 0 || member->group() != any->group())
        return false;
      if (member->made() < steps) return false;
    }
    return true;
  };
  for (int i = 0; i < 60; ++i) {
    world.run(5 * patience);
    const std::uint64_t before = checks.steps();
    if (goes_on()) {
      world.run(5 * patience);
      if (goes_on() && checks.steps() >= before + world.machines()) return;
    }
  }
  std::string states;
  for (std::size_t i = 0; i < world.machines(); ++i) {
    const StepMember* const member = member_on(world, i);
    states += "\n    " + (member == nullptr ? "(none)" : member->state());
  }
  checks.fail("not all go on at the end" + states);
}

Result play(const StepSchedule& schedule, std::uint64_t seed) {
  StepChecks checks;
  Traps traps;
  World world(derive_seed(seed, {4}), {.jitter = schedule.jitter, .disk = schedule.disk});
  for (const std::string& name : schedule.options.names) {
    world.add_machine(name, [&](Environment& environment) {
      return std::make_unique<StepMember>(environment, schedule.options, checks, traps);
    });
  }
  suffer(in_order(schedule.starts, schedule.faults), world, traps);
  world.run(milliseconds(300));
  calm_down(world, traps, 0);
  world.set({.jitter = 1ms, .disk = 1ms});
  settles(world, checks, schedule.patience);
  Result result;
  result.problems = checks.problems();
  result.events = world.events();
  result.steps = checks.steps();
  result.taken_over = checks.taken_over();
  result.repeated = checks.repeated();
  result.discarded = checks.discarded();
  result.ended = checks.ended();
  return result;
}

TEST_CASE("a group that loses members between the operations of a step goes on with one state") {
  const Seeds seeds(test::sanitized ? 30 : 300);
  Result all;
  std::uint64_t failed = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.end && failed < 5; ++seed) {
    const StepSchedule schedule = draw_steps(seed);
    Result result = play(schedule, seed);
    all.events += result.events;
    all.steps += result.steps;
    all.taken_over += result.taken_over;
    all.repeated += result.repeated;
    all.discarded += result.discarded;
    all.ended += result.ended;
    if (result.problems.empty()) continue;
    ++failed;
    const auto again = [&](const Schedule& shorter) {
      StepSchedule same = schedule;
      static_cast<Schedule&>(same) = shorter;
      return play(same, seed).problems;
    };
    report(seed, schedule, std::move(result.problems), again);
  }
  MESSAGE(all.events << " events, " << all.steps << " steps, " << all.repeated << " repeated, "
                     << all.taken_over << " states taken over, " << all.discarded
                     << " results discarded, " << all.ended << " ends of a minority");
}

}  // namespace
}  // namespace dpwa::world::testing
