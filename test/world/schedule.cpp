#include "test/world/schedule.h"

#include <array>
#include <chrono>

#include "dpwa/base/random.h"

namespace dpwa::world::testing {
namespace {

using std::chrono::milliseconds;

Fault::Kind draw_kind(Random& random, bool loses_disks) {
  using enum Fault::Kind;
  static constexpr std::array kinds = {kill,  start, start, freeze, wake,  cut,   cut,   heal,
                                       split, split, mend,  slow,   scene, scene, scene, replace};
  while (true) {
    const Fault::Kind kind = kinds.at(random.below(kinds.size()));
    if (kind != replace || loses_disks) return kind;
  }
}

Trap draw_trap(Random& random) {
  // Half of them in the decision on a view, at the first message of a kind.
  const bool in_decision = random.below(4) != 0;
  return {random.below(in_decision ? 5 : 9), random.below(4) == 0 ? random.below(4) : 0,
          random.below(2) == 0, random.below(4) != 0,
          milliseconds(random.below(random.below(2) == 0 ? 60 : 2000))};
}

// Faults come in bursts: between the messages of one change, or steps apart.
Duration draw_gap(Random& random) {
  switch (random.below(4)) {
    case 0:
      return std::chrono::microseconds(random.below(5000));
    case 1:
      return milliseconds(random.below(60));
    case 2:
      return milliseconds(random.below(600));
    default:
      return milliseconds(random.below(2000));
  }
}

}  // namespace

Schedule draw(std::uint64_t seed) {
  Random random(derive_seed(seed, {1}));
  Schedule schedule;
  schedule.machines = 2 + random.below(5);
  schedule.loses_disks = random.below(3) == 0;
  schedule.jitter = milliseconds(1 + random.below(random.below(2) == 0 ? 3 : 60));
  schedule.disk = milliseconds(1 + random.below(random.below(2) == 0 ? 4 : 60));
  // Without patience several propose at once, and take the living for dead.
  schedule.patience = milliseconds(60 + random.below(60));
  if (random.below(2) == 0) schedule.patience += 4 * (schedule.jitter + schedule.disk);
  schedule.spoils = random.below(8) == 0;
  for (std::size_t i = 0; i < schedule.machines; ++i)
    schedule.starts.push_back(milliseconds(random.below(random.below(4) == 0 ? 3000 : 50)));
  const std::size_t count = 1 + random.below(30);
  Duration at = milliseconds(random.below(random.below(2) == 0 ? 500 : 3000));
  for (std::size_t i = 0; i < count; ++i) {
    Fault fault;
    fault.at = at;
    fault.kind = draw_kind(random, schedule.loses_disks);
    fault.first = random.below(schedule.machines);
    fault.second = random.below(schedule.machines);
    fault.trap = draw_trap(random);
    fault.other = draw_trap(random);
    fault.side = random.below(1U << schedule.machines);
    schedule.faults.push_back(fault);
    if (fault.kind == Fault::Kind::scene && random.below(2) == 0) {
      // What some of them have decided reaches only those of their side.
      fault.kind = Fault::Kind::split;
      fault.side = random.below(1U << schedule.machines);
      fault.at += schedule.patience * static_cast<std::int64_t>(random.below(100)) / 30;
      schedule.faults.push_back(fault);
      at = fault.at;
    }
    at += draw_gap(random);
  }
  return schedule;
}

namespace {

std::string words(const Trap& trap) {
  return " message " + std::to_string(trap.kind) + " after " + std::to_string(trap.after) +
         (trap.sends ? " sent" : " unsent") + (trap.ends ? " ends" : " stops") + " for " +
         std::to_string(trap.back.count() / 1000000) + " ms";
}

}  // namespace

std::string words(const Schedule& schedule) {
  static const char* const names[] = {"kill",    "start", "freeze", "wake", "cut", "heal",
                                      "replace", "scene", "split",  "mend", "slow"};
  std::string text = std::to_string(schedule.machines) + " machines";
  for (const Fault& fault : schedule.faults) {
    text += "\n  " + std::to_string(fault.at.count() / 1000) + " us " +
            names[static_cast<std::size_t>(fault.kind)] + " " + std::to_string(fault.first);
    if (fault.kind == Fault::Kind::scene)
      text +=
          ":" + words(fault.trap) + "; " + std::to_string(fault.second) + ":" + words(fault.other);
    if (fault.kind == Fault::Kind::split) text += " side " + std::to_string(fault.side);
    if (fault.kind == Fault::Kind::cut || fault.kind == Fault::Kind::heal ||
        fault.kind == Fault::Kind::slow)
      text += " -> " + std::to_string(fault.second);
  }
  return text;
}

namespace {

GroupMember* member_on(World& world, std::size_t machine) {
  return world.runs(machine) ? static_cast<GroupMember*>(world.program(machine)) : nullptr;
}

}  // namespace

void happen(const Fault& fault, World& world) {
  using enum Fault::Kind;
  const std::size_t machines = world.machines();
  switch (fault.kind) {
    case kill:
      return world.kill(fault.first);
    case start:
      return world.start(fault.first);
    case freeze:
      return world.freeze(fault.first);
    case wake:
      return world.wake(fault.first);
    case cut:
    case heal:
      return world.cut(fault.first, fault.second, fault.kind == cut);
    case replace:
      world.kill(fault.first);
      world.wipe(fault.first);
      return world.start(fault.first);
    case scene: {
      if (GroupMember* const member = member_on(world, fault.first)) member->set(fault.trap);
      if (GroupMember* const member = member_on(world, fault.second)) member->set(fault.other);
      const std::size_t third = (fault.first + 1 + fault.side % (machines - 1)) % machines;
      world.kill(third);
      if (fault.side % 4 != 0) world.start(third);
      return;
    }
    case split:
    case mend:
      for (std::size_t from = 0; from < machines; ++from) {
        for (std::size_t to = 0; to < machines; ++to) {
          const bool apart = (fault.side >> from & 1) != (fault.side >> to & 1);
          world.cut(from, to, fault.kind == split && apart);
        }
      }
      return;
    case slow:
      return world.slow_down(fault.first, fault.second, fault.trap.back / 4);
  }
}

void calm_down(World& world) {
  for (std::size_t from = 0; from < world.machines(); ++from) {
    for (std::size_t to = 0; to < world.machines(); ++to) {
      world.cut(from, to, false);
      world.slow_down(from, to, {});
    }
    world.wake(from);
    world.start(from);
    member_on(world, from)->set(std::nullopt);
  }
  world.set({.jitter = milliseconds(1), .disk = milliseconds(1)});
}

}  // namespace dpwa::world::testing
