// The snapshots of the servers, as SnapshotKeeper writes and reads them.
#include <algorithm>
#include <any>
#include <string>
#include <utility>
#include <vector>

#include "test/dpwa/kvstore/virtual_store.h"

namespace dpwa::kvstore::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto disk_file = "snapshots";
constexpr Duration between_snapshots = 700ms;
constexpr Duration given_up_after = 3s;

}  // namespace

void VirtualStore::list_snapshots(std::size_t at) {
  Server& server = servers_[at];
  if (!options_.keeps_snapshots) {
    const std::uint32_t number = from_.begin()->second.snapshot;
    const auto other = static_cast<std::uint32_t>(number + 1 + at);
    return server.engine->set_stock({{1, number - 1}, {1, number}, {1, other}}, true);
  }
  const std::any file = server.environment->read(disk_file);
  server.disk = file.has_value() ? std::any_cast<Disk>(file) : Disk{};
  server.captured.clear();
  server.written = 0;
  server.updates = 0;
  server.begun = server.environment->now();
  std::vector<SnapshotId> held;
  for (const auto& [id, part] : server.disk.parts) held.push_back(id);
  server.engine->set_stock(std::move(held), server.disk.complete.number > 0);
}

void VirtualStore::load_snapshot(std::size_t at) {
  Server& server = servers_[at];
  if (server.engine->loaded()) return;
  const auto start = server.engine->start(server.environment->now());
  if (!start) return;
  if (!start->problem.empty()) return fail("server " + std::to_string(at) + ": " + start->problem);
  std::vector<ShardEngine::Captured> slices;
  if (options_.keeps_snapshots) {
    const auto part = server.disk.parts.find(start->from);
    if (part != server.disk.parts.end())
      for (const auto& [key, each] : part->second) slices.push_back(each);
    return server.engine->load(start->from, std::move(slices));
  }
  if (start->from != SnapshotId{1, from_.begin()->second.snapshot})
    fail("server " + std::to_string(at) + " starts from " + std::to_string(start->from.number));
  for (const auto& [key, each] : from_) {
    const auto home = cut_into_slices(each.slice.key, elements, options_.servers).front().server;
    if (home == at) slices.push_back(each);
  }
  server.engine->load(start->from, std::move(slices));
}

void VirtualStore::keep_snapshots(std::size_t at) {
  Server& server = servers_[at];
  ServerEngine& engine = *server.engine;
  const Epoch& epoch = engine.epoch();
  if (!options_.keeps_snapshots || !epoch.has(engine.self())) return;
  world::Environment& environment = *server.environment;
  const std::uint32_t number = engine.shard().snapshot();
  server.captured.erase(server.captured.begin(), server.captured.lower_bound(number));
  const bool all_up = std::ranges::all_of(
      epoch.servers, [](const ServerEntry& each) { return each.state == ServerState::up; });
  if (number > server.written && number > epoch.from.number && all_up &&
      server.captured[number].size() == engine.shard().primaries()) {
    server.written = number;
    server.disk.parts[{epoch.run, number}] = std::move(server.captured[number]);
    environment.write(disk_file, server.disk,
                      [&engine, number] { engine.snapshot_over(number, /*stored=*/true); });
  }
  const SnapshotId complete{epoch.run, engine.stored_everywhere()};
  if (complete > server.disk.complete && server.disk.parts.contains(complete)) {
    std::erase_if(server.disk.parts,
                  [&](const auto& each) { return each.first < server.disk.complete; });
    server.disk.complete = complete;
    environment.write(disk_file, server.disk, [] {});
  }
  const Duration since = environment.now() - server.begun;
  const bool is_over = engine.over_everywhere() >= number && since > between_snapshots;
  const std::uint64_t updates = engine.updates_everywhere();
  if (at == 0 && (is_over || since > given_up_after) && engine.knows_updates() &&
      updates > server.updates) {
    server.updates = updates;
    server.begun = environment.now();
    engine.begin_snapshot();
  }
}

bool VirtualStore::has_snapshot() const {
  return std::ranges::all_of(servers_, [this](const Server& server) {
    const auto machine = static_cast<std::size_t>(&server - servers_.data());
    const std::any* const file = world_.file(machine, disk_file);
    return file != nullptr && std::any_cast<const Disk&>(*file).complete.number > 0;
  });
}

}  // namespace dpwa::kvstore::testing
