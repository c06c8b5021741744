// The parameter server on the random schedules of the groups: each acknowledged push counts once,
// and all go on once the faults are over.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "test/dpwa/kvstore/virtual_store.h"
#include "test/support/sanitized.h"
#include "test/world/schedule.h"
#include "test/world/seeds.h"

namespace dpwa::world::testing {
namespace {

using namespace std::chrono_literals;
using dpwa::KvstoreType;
using kvstore::ServerState;
using kvstore::testing::StoreOptions;
using kvstore::testing::VirtualStore;

StoreOptions options_of(const Schedule& schedule, std::uint64_t seed) {
  static constexpr KvstoreType types[] = {KvstoreType::dist_sync, KvstoreType::dist_async,
                                          KvstoreType::dist_ssp};
  StoreOptions options;
  options.type = types[seed % 3];
  options.staleness = seed % 3 == 2 ? seed % 4 : 0;
  options.servers = schedule.machines >= 4 ? 2 : 1;
  options.replicas = options.servers > 1;
  options.workers = schedule.machines - options.servers;
  options.keys = 2;
  options.seed = seed;
  options.numbers_by_time = true;
  return options;
}

// Values are in memory alone, so that one of two copies has to be left.
bool may_end(VirtualStore& store, std::size_t servers) {
  if (servers < 2) return false;
  for (std::size_t server = 0; server < servers; ++server) {
    if (!store.server_runs(server) || store.world().frozen(server)) return false;
    const auto& epoch = store.server(server).epoch();
    if (epoch.number != store.server(0).epoch().number) return false;
    const auto& entry = epoch.servers[server];
    if (entry.id != store.server(server).self() || entry.state != ServerState::up) return false;
  }
  return true;
}

// Returns whether it was more than the end or the start of a worker.
bool happen(const Fault& fault, VirtualStore& store, std::size_t servers, bool calm) {
  using enum Fault::Kind;
  const bool ends = fault.kind == kill || fault.kind == replace;
  const bool of_server = fault.first < servers;
  if (fault.is_of_groups()) return false;
  if (ends && of_server && !(calm && may_end(store, servers))) return false;
  const bool starts = fault.kind == start || fault.kind == replace;
  if (starts && store.lives() == VirtualStore::max_lives) return false;
  Traps none;
  testing::happen(fault, store.world(), none);
  return of_server || !(ends || fault.kind == start);
}

// What a scene has in store for the processes: the first server, or the second, then the others.
class Scenes {
 public:
  // `ends`: also the end of servers.
  Scenes(VirtualStore& store, const StoreOptions& options, bool ends)
      : store_(store), options_(options), ends_(ends) {
    store.watch([this](Environment& environment, const std::string& name,
                       const kvstore::Message& message,
                       bool sent) { return falls(environment, name, message, sent); });
  }

  void play(const Fault& fault) {
    World& world = store_.world();
    for (std::size_t machine = 0; machine < world.machines(); ++machine) {
      const bool is_server = machine < options_.servers;
      const std::size_t role = is_server ? (machine + fault.first) % options_.servers : 2;
      traps_[world.name(machine)] = fault.traps.at(role);
    }
    const std::size_t worker = options_.servers + fault.second % options_.workers;
    switch (fault.opening) {
      case Fault::Opening::loss:
      case Fault::Opening::renew:
        world.kill(worker);
        if (fault.side % 4 != 0 && store_.lives() < VirtualStore::max_lives) world.start(worker);
        return;
      case Fault::Opening::part:
        world.cut(0, 1, true);
        world.cut(1, 0, true);
        return;
    }
  }

 private:
  // The messages that decide an epoch come in the order of those that decide a view.
  static std::optional<std::size_t> kind_of(const kvstore::Message& message) {
    return std::visit(
        [](const auto& content) -> std::optional<std::size_t> {
          using Content = std::decay_t<decltype(content)>;
          if constexpr (std::is_constructible_v<kvstore::EpochMessage, Content>)
            return kvstore::EpochMessage(content).index();
          return std::nullopt;
        },
        message);
  }

  bool falls(Environment& environment, const std::string& name, const kvstore::Message& message,
             bool sent) {
    const auto kind = kind_of(message);
    const auto sprung = kind ? spring(traps_[name], *kind, sent) : std::nullopt;
    if (!sprung) return false;
    const bool ends = sprung->does == Trap::Does::ends || sprung->does == Trap::Does::burns;
    // Several may be about to start.
    const bool may_end =
        name.front() == 's' ? ends_ : store_.lives() + options_.workers < VirtualStore::max_lives;
    if (ends && may_end) {
      environment.crash(sprung->back);
    } else if (sprung->does == Trap::Does::hides) {
      environment.hide(sprung->back);
    } else {
      environment.stop(sprung->back);
    }
    return ends && may_end;
  }

  VirtualStore& store_;
  const StoreOptions& options_;
  const bool ends_;
  Traps traps_;
};

// All machines run, and hear one another; of workers as many as may have lived.
void recover(VirtualStore& store, std::size_t servers) {
  World& world = store.world();
  world.heal();
  for (std::size_t machine = 0; machine < world.machines(); ++machine) {
    world.wake(machine);
    if (machine < servers || store.lives() < VirtualStore::max_lives) world.start(machine);
  }
}

std::vector<std::uint64_t> clocks(const VirtualStore& store, std::size_t workers) {
  std::vector<std::uint64_t> all;
  for (std::size_t worker = 0; worker < workers; ++worker) all.push_back(store.clock(worker));
  return all;
}

// Without a worker that cannot be started any more, the others may have to wait for its vote.
bool is_complete(VirtualStore& store) {
  bool all_run = true;
  for (std::size_t machine = 0; machine < store.world().machines(); ++machine)
    all_run = all_run && store.world().runs(machine);
  return all_run || store.lives() < VirtualStore::max_lives;
}

std::vector<std::string> wrong_in_any_case(const VirtualStore& store) {
  std::vector<std::string> problems = store.failures();
  if (const std::string twice = store.double_count(); !twice.empty()) problems.push_back(twice);
  return problems;
}

// Any server may end at any time, and with it the values that nobody else has.
std::vector<std::string> play_with_losses(const Schedule& schedule, std::uint64_t seed,
                                          bool snapshots) {
  StoreOptions options = options_of(schedule, seed);
  if (snapshots) options.replicas = false;
  options.keeps_snapshots = snapshots;
  VirtualStore store(options);
  for (std::size_t worker = 0; worker < options.workers; ++worker) store.slow_down(worker, 5);
  Duration now{};
  Traps none;
  Scenes scenes(store, options, /*ends=*/true);
  for (const Fault& fault : schedule.faults) {
    store.run(fault.at - now);
    now = fault.at;
    if (fault.kind == Fault::Kind::scene) scenes.play(fault);
    const bool starts = fault.kind == Fault::Kind::start || fault.kind == Fault::Kind::replace;
    if (fault.is_of_groups() || (starts && store.lives() == VirtualStore::max_lives)) continue;
    if (snapshots && fault.kind == Fault::Kind::replace) continue;  // of the disk, too
    testing::happen(fault, store.world(), none);
  }
  recover(store, options.servers);
  store.run(8s);
  recover(store, options.servers);  // those that were told that the run is over, too
  store.run(12s);
  const std::vector<std::uint64_t> before = clocks(store, options.workers);
  store.run(3s);
  std::vector<std::string> problems = wrong_in_any_case(store);
  const bool complete = is_complete(store);
  for (std::size_t worker = 0; complete && worker < options.workers; ++worker) {
    const bool runs = store.world().runs(options.servers + worker);
    const bool goes_on = store.clock(worker) > before[worker];
    const bool may_stand = store.told_why(worker) && !(snapshots && store.has_snapshot());
    if (runs && !goes_on && !may_stand)
      problems.push_back("w" + std::to_string(worker) + " neither goes on nor is told why");
  }
  return problems;
}

std::vector<std::string> play(const Schedule& schedule, std::uint64_t seed) {
  const StoreOptions options = options_of(schedule, seed);
  VirtualStore store(options);
  for (std::size_t worker = 0; worker < options.workers; ++worker) store.slow_down(worker, 5);
  Duration now{};
  Duration disturbed{};
  Scenes scenes(store, options, /*ends=*/false);
  for (const Fault& fault : schedule.faults) {
    store.run(fault.at - now);
    now = fault.at;
    if (fault.kind == Fault::Kind::scene) {
      scenes.play(fault);
      disturbed = now;
    }
    // What is about to be decided may have left the other copy out.
    if (happen(fault, store, options.servers, now - disturbed > 2s)) disturbed = now;
  }
  recover(store, options.servers);
  store.run(12s);
  if (!is_complete(store)) return wrong_in_any_case(store);
  const std::vector<std::uint64_t> before = clocks(store, options.workers);
  store.run(3s);
  std::vector<std::string> problems;
  for (std::size_t worker = 0; worker < options.workers; ++worker) {
    if (store.world().runs(options.servers + worker) && store.clock(worker) <= before[worker])
      problems.push_back("w" + std::to_string(worker) + " does not go on");
  }
  store.quiesce(4s);
  if (const std::string problem = store.problem(); !problem.empty()) problems.push_back(problem);
  if (options.replicas && !store.replicas_agree()) problems.push_back("the replicas differ");
  return problems;
}

}  // namespace

using Play = std::vector<std::string> (*)(const Schedule&, std::uint64_t seed);
void try_all(std::uint64_t count, Play play) {
  const Seeds seeds(count);
  std::uint64_t failed = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.end && failed < 5; ++seed) {
    const Schedule schedule = draw(seed);
    const auto again = [&](const Schedule& shorter) { return play(shorter, seed); };
    std::vector<std::string> problems = again(schedule);
    if (problems.empty()) continue;
    ++failed;
    report(seed, schedule, std::move(problems), again);
  }
}

TEST_CASE("a store counts each push once, whatever happens, and all go on afterwards") {
  try_all(test::sanitized ? 6 : 60, play);
}

TEST_CASE("when servers end with the only values, each worker goes on or is told that they did") {
  try_all(test::sanitized ? 6 : 60, [](const Schedule& schedule, std::uint64_t seed) {
    return play_with_losses(schedule, seed, /*snapshots=*/false);
  });
}

TEST_CASE("when servers end that keep snapshots, each worker goes on from one or is told why not") {
  try_all(test::sanitized ? 6 : 60, [](const Schedule& schedule, std::uint64_t seed) {
    return play_with_losses(schedule, seed, /*snapshots=*/true);
  });
}

}  // namespace dpwa::world::testing
