#include "test/world/schedule.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <utility>

#include "dpwa/base/random.h"

namespace dpwa::world::testing {
namespace {

using std::chrono::milliseconds;
using enum Trap::Does;

// Of ViewMessage.
enum Message : std::uint8_t { prepare, promise, accept, accepted, installed, ask, apply, ready };

Fault::Kind draw_kind(Random& random, bool loses_disks) {
  using enum Fault::Kind;
  static constexpr std::array kinds = {kill,  start, start, freeze, wake,   cut,    cut,   heal,
                                       split, split, mend,  slow,   scene,  scene,  scene, scene,
                                       scene, scene, leave, outage, behead, replace};
  while (true) {
    const Fault::Kind kind = kinds.at(random.below(kinds.size()));
    if (kind != replace || loses_disks) return kind;
  }
}

Duration briefly(Random& random) {
  return milliseconds(random.below(40));
}

Duration long_after(Random& random) {
  return milliseconds(400 + random.below(1600));
}

Trap draw_trap(bool loses_disks, Random& random) {
  // Most of them in the decision on a view, at the first message of a kind.
  const bool in_decision = random.below(4) != 0;
  const std::array does = {ends, ends, loses_disks ? burns : ends, stops, hides};
  return {random.below(in_decision ? 5 : 9), random.below(4) == 0 ? random.below(4) : 0,
          random.below(2) == 0, does.at(random.below(does.size())),
          random.below(2) == 0 ? briefly(random) : milliseconds(random.below(2000))};
}

// The roles are those of one that leads a change, its rival, and all others.
void draw_scene(Fault& fault, bool loses_disks, Random& random) {
  using enum Fault::Opening;
  auto& [leader, rival, others] = fault.traps;
  fault.opening = random.below(2) == 0 ? renew : loss;
  fault.first = random.below(4) == 0 ? random.below(8) : 0;
  const auto ends_or_burns = loses_disks && random.below(2) == 0 ? burns : ends;
  const Trap decides_alone = {installed, 0, false, ends, long_after(random)};
  switch (random.below(10)) {
    case 0:  // what they promised to one, the others forget before the other one asks for votes
      fault.opening = part;
      leader = {{accept, 0, false, stops, briefly(random)}, decides_alone};
      rival = {{accept, 0, false, stops, briefly(random)}, decides_alone};
      others = {{promise, 1, true, ends_or_burns, milliseconds(random.below(6))}};
      return;
    case 1:  // they voted for a view that nobody knows any more
    case 2:
      leader = {decides_alone};
      rival = {{accepted, 0, true, ends_or_burns, briefly(random)}};
      others = {{accepted, 0, random.below(4) != 0, ends, briefly(random)}};
      if (random.below(2) == 0)
        others = {{promise, 0, true, hides, milliseconds(random.below(300))}};
      return;
    case 3:  // one has voted for its view alone when the others decide
      leader = {{accept, 0, false, random.below(2) == 0 ? stops : hides, long_after(random)}};
      rival = {decides_alone};
      return;
    case 4:  // old answers come when others have gone on
      if (random.below(2) == 0) fault.opening = part;
      leader = {{random.below(5), 0, false, stops, milliseconds(random.below(600))}};
      rival = {{random.below(5), random.below(2), false, stops, milliseconds(random.below(600))},
               decides_alone};
      others = {{random.below(2) == 0 ? std::size_t{promise} : random.below(4), random.below(2),
                 false, stops, milliseconds(random.below(300))}};
      if (random.below(2) == 0) leader = {};
      return;
    case 5:  // those that have promised, or voted, decide alone
      leader = {
          {accept, random.below(3), true, random.below(2) == 0 ? hides : ends, long_after(random)}};
      rival = {{random.below(2) == 0 ? promise : accepted, 0, true, hides, long_after(random)}};
      if (random.below(2) == 0) std::swap(leader, rival);
      return;
    case 6:  // one that joins is silent for a time
      fault.opening = loss;
      rival = others = {{ready, 0, false, random.below(2) == 0 ? stops : hides,
                         milliseconds(100 + random.below(900))}};
      return;
    default:
      fault.opening = loss;
      leader = {draw_trap(loses_disks, random)};
      rival = {draw_trap(loses_disks, random)};
  }
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
  if (random.below(3) == 0) schedule.servers = 1 + random.below(2);
  schedule.odd = schedule.machines > 2 && random.below(16) == 0;
  const std::size_t most = schedule.machines / 2 + 1;
  if (schedule.odd || (!schedule.loses_disks && random.below(4) == 0))
    schedule.minimum = schedule.odd ? schedule.machines - 1 : most;
  for (std::size_t i = 0; i < schedule.machines; ++i)
    schedule.starts.push_back(milliseconds(random.below(random.below(4) == 0 ? 3000 : 50)));
  // At the end.
  if (schedule.machines > 2 && !schedule.odd && !schedule.spoils && random.below(6) == 0) {
    schedule.apart = {0, 1 + random.below(schedule.machines - 1)};
  } else if (random.below(4) == 0) {
    const std::uint64_t all = 1U << schedule.machines;
    const std::uint64_t servers = (1U << schedule.servers) - 1;
    schedule.lost = random.below(all) & (servers == 0 ? random.below(all) : ~servers);
  }
  const std::size_t count = 1 + random.below(30);
  Duration at = milliseconds(random.below(random.below(2) == 0 ? 500 : 3000));
  if (random.below(schedule.minimum > 0 ? 2 : 8) == 0) at = {};
  for (std::size_t i = 0; i < count; ++i) {
    Fault fault;
    fault.at = at;
    fault.kind = draw_kind(random, schedule.loses_disks);
    if (at == Duration{}) fault.kind = Fault::Kind::scene;  // before the first view
    fault.first = random.below(schedule.machines);
    fault.second = random.below(schedule.machines);
    fault.side = random.below(1U << schedule.machines);
    if (fault.kind == Fault::Kind::outage && random.below(2) == 0) fault.side = ~0U;
    fault.more = milliseconds(random.below(500));
    if (fault.kind == Fault::Kind::scene) draw_scene(fault, schedule.loses_disks, random);
    if (fault.kind == Fault::Kind::scene && at > Duration{} && random.below(2) == 0) {
      // All are there.
      schedule.faults.push_back({.at = at, .kind = Fault::Kind::recover});
      at += schedule.patience * static_cast<std::int64_t>(5 + random.below(20));
      fault.at = at;
    }
    schedule.faults.push_back(fault);
    if (fault.kind == Fault::Kind::scene && random.below(2) == 0) {
      // What some of them have decided reaches only those of their side, or the first of them dies.
      fault.kind = random.below(3) == 0 ? Fault::Kind::behead : Fault::Kind::split;
      fault.side = random.below(1U << schedule.machines);
      const Duration most = schedule.patience * (fault.kind == Fault::Kind::split ? 3 : 8);
      fault.at += most * static_cast<std::int64_t>(random.below(100)) / 100;
      schedule.faults.push_back(fault);
      at = fault.at;
    }
    at += draw_gap(random);
  }
  return schedule;
}

namespace {

std::string words(const std::vector<Trap>& traps) {
  static const char* const does[] = {"ends", "burns", "stops", "hides"};
  std::string text;
  for (const Trap& trap : traps) {
    text += " message " + std::to_string(trap.kind) + " after " + std::to_string(trap.after) +
            (trap.sends ? " sent " : " unsent ") + does[static_cast<std::size_t>(trap.does)] +
            " for " + std::to_string(trap.back.count() / 1000000) + " ms,";
  }
  return text;
}

}  // namespace

std::string words(const Schedule& schedule) {
  static const char* const names[] = {"kill",    "start",  "freeze",  "wake", "cut",  "heal",
                                      "replace", "scene",  "split",   "mend", "slow", "behead",
                                      "leave",   "outage", "recover", "trap"};
  static const char* const openings[] = {"loss", "renew", "part"};
  std::string text =
      std::to_string(schedule.machines) + " machines, " + std::to_string(schedule.servers) +
      " servers, minimum " + std::to_string(schedule.minimum) + ", lost " +
      std::to_string(schedule.lost) +
      (schedule.apart ? ", 0 and " + std::to_string(schedule.apart->second) + " apart" : "") +
      (schedule.odd ? ", one odd" : "") + (schedule.spoils ? ", spoils" : "");
  for (const Fault& fault : schedule.faults) {
    text += "\n  " + std::to_string(fault.at.count() / 1000) + " us " +
            names[static_cast<std::size_t>(fault.kind)] + " " + std::to_string(fault.first) + " " +
            std::to_string(fault.second) + " side " + std::to_string(fault.side);
    if (fault.kind == Fault::Kind::trap) text += ":" + words(fault.traps[0]);
    if (fault.kind == Fault::Kind::scene)
      text += std::string(" ") + openings[static_cast<std::size_t>(fault.opening)] + ":" +
              words(fault.traps[0]) + " rival:" + words(fault.traps[1]) +
              " others:" + words(fault.traps[2]);
  }
  return text;
}

namespace {

GroupProcess* member_on(World& world, std::size_t machine) {
  return world.runs(machine) ? static_cast<GroupProcess*>(world.program(machine)) : nullptr;
}

std::vector<std::size_t> by_seniority(World& world) {
  members::View view;
  for (std::size_t i = 0; i < world.machines(); ++i) {
    const GroupProcess* const member = member_on(world, i);
    if (member != nullptr && member->engine().view().number >= view.number)
      view = member->engine().view();
  }
  std::vector<std::size_t> order(world.machines());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t machine) {
    return std::ranges::find(view.members, world.name(machine),
                             [](const members::Member& each) { return each.id.name; }) -
           view.members.begin();
  });
  return order;
}

void play_scene(const Fault& fault, World& world, Traps& traps) {
  using enum Fault::Opening;
  const std::vector<std::size_t> order = by_seniority(world);
  const auto at = [&](std::size_t place) { return order[(fault.first + place) % order.size()]; };
  for (std::size_t place = 0; place < order.size(); ++place) {
    traps[world.name(at(place))] = fault.traps.at(std::min<std::size_t>(place, 2));
  }
  switch (fault.opening) {
    case loss: {
      const std::size_t lost = at(1 + fault.side % (order.size() - 1));
      world.kill(lost);
      if (fault.side % 4 != 0) world.start(lost);
      return;
    }
    case renew:
      if (GroupProcess* const member = member_on(world, at(fault.second % 2))) member->renew();
      return;
    case part:
      world.cut(at(0), at(1), true);
      world.cut(at(1), at(0), true);
      return;
  }
}

}  // namespace

void happen(const Fault& fault, World& world, Traps& traps) {
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
    case scene:
      return play_scene(fault, world, traps);
    case leave:
      for (std::size_t i = 0; i < machines; ++i) {
        GroupProcess* const member = member_on(world, i);
        if (member != nullptr && (fault.side >> i & 1) != 0) member->leave();
      }
      return;
    case behead:
      return world.kill(by_seniority(world).front());
    case outage:
      for (std::size_t i = 0; i < machines; ++i) {
        if ((fault.side >> i & 1) == 0) continue;
        world.kill(i);
        world.start(i);
      }
      return;
    case recover:
      return calm_down(world, traps, 0);
    case trap:
      traps[world.name(fault.first)] = fault.traps[0];
      return;
    case split:
      return world.split([&](std::size_t machine) { return (fault.side >> machine & 1) != 0; });
    case mend:
      return world.split([](std::size_t) { return true; });
    case slow:
      return world.slow_down(fault.first, fault.second, fault.more);
  }
}

std::vector<Fault> in_order(const std::vector<Duration>& starts, const std::vector<Fault>& faults) {
  std::vector<Fault> all;
  for (std::size_t i = 0; i < starts.size(); ++i)
    all.push_back({.at = starts[i], .kind = Fault::Kind::start, .first = i});
  all.insert(all.end(), faults.begin(), faults.end());
  std::ranges::stable_sort(all, {}, &Fault::at);
  return all;
}

void suffer(const std::vector<Fault>& in_order, World& world, Traps& traps) {
  Duration now{};
  for (const Fault& fault : in_order) {
    world.run(fault.at - now);
    now = fault.at;
    happen(fault, world, traps);
  }
}

void calm_down(World& world, Traps& traps, std::uint64_t lost) {
  for (auto& [name, set] : traps) set.clear();
  world.heal();
  for (std::size_t machine = 0; machine < world.machines(); ++machine) {
    world.wake(machine);
    if ((lost >> machine & 1) != 0) {
      world.kill(machine);
    } else {
      world.start(machine);
    }
  }
}

}  // namespace dpwa::world::testing
