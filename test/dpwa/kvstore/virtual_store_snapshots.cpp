// The disks of the servers, on which they do what their SnapshotPlans wish.
#include <algorithm>
#include <any>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "test/dpwa/kvstore/virtual_store.h"

namespace dpwa::kvstore::testing {
namespace {

constexpr auto disk_file = "snapshots";
constexpr Duration between_snapshots = std::chrono::milliseconds(700);
constexpr std::uint32_t kept_snapshots = 2;

}  // namespace

// With an earlier snapshot, and a later one that the other servers lack.
VirtualStore::Disk VirtualStore::first_disk(std::size_t at) const {
  Disk disk;
  if (from_.empty()) return disk;
  const SnapshotId id{1, from_.begin()->second.snapshot};
  const auto other = static_cast<std::uint32_t>(id.number + 1 + at);
  disk.parts = {{{1, id.number - 1}, {}}, {id, {}}, {{1, other}, {}}};
  disk.complete = {id};
  for (const auto& [key, each] : from_) {
    const auto home = cut_into_slices(each.slice.key, elements, options_.servers).front().server;
    if (home == at) disk.parts[id].push_back(each);
  }
  return disk;
}

void VirtualStore::list_snapshots(std::size_t at) {
  Server& server = servers_[at];
  const std::any file = server.environment->read(disk_file);
  server.disk = file.has_value() ? std::any_cast<Disk>(file) : first_disk(at);
  server.plan = std::make_unique<SnapshotPlan>(*server.engine, between_snapshots, kept_snapshots,
                                               server.environment->now());
  std::vector<SnapshotId> held;
  for (const auto& [id, part] : server.disk.parts) held.push_back(id);
  server.plan->listed(std::move(held), !server.disk.complete.empty());
}

void VirtualStore::keep_snapshots(std::size_t at) {
  Server& server = servers_[at];
  SnapshotPlan& plan = *server.plan;
  Disk& disk = server.disk;
  const world::Environment& environment = *server.environment;
  std::vector<std::function<void()>> on_disk;  // once the file has what is wished
  for (SnapshotPlan::Wish& wish : plan.tick(environment.now())) {
    if (const auto* load = std::get_if<SnapshotPlan::Load>(&wish)) {
      plan.loaded(load->id, disk.parts.at(load->id), environment.now());
    } else if (auto* write = std::get_if<SnapshotPlan::Write>(&wish)) {
      disk.parts[write->id] = std::move(write->part);
      std::erase_if(disk.parts, [&](const auto& each) {
        return !disk.complete.contains(each.first) &&
               plan.retention().gives_up(each.first, write->id);
      });
      on_disk.emplace_back([&plan, &environment, id = write->id] {
        plan.written(id, /*stored=*/true, environment.now());
      });
    } else {
      const auto complete = std::get<SnapshotPlan::Complete>(wish);
      disk.complete.insert(complete.id);
      const auto goes =
          [&, kept = plan.retention().kept(disk.complete, complete.id)](const SnapshotId& id) {
            return id < complete.id && !kept.contains(id);
          };
      std::erase_if(disk.parts, [&](const auto& each) { return goes(each.first); });
      std::erase_if(disk.complete, goes);
      on_disk.emplace_back([&plan, complete] { plan.completed(complete); });
    }
  }
  if (plan.refusal()) fail("server " + std::to_string(at) + ": " + *plan.refusal());
  if (on_disk.empty()) return;
  server.environment->write(disk_file, disk, [on_disk = std::move(on_disk)] {
    for (const auto& each : on_disk) each();
  });
}

bool VirtualStore::has_snapshot() const {
  return std::ranges::all_of(servers_, [this](const Server& server) {
    const auto machine = static_cast<std::size_t>(&server - servers_.data());
    const std::any* const file = world_.file(machine, disk_file);
    return file != nullptr && !std::any_cast<const Disk&>(*file).complete.empty();
  });
}

}  // namespace dpwa::kvstore::testing
