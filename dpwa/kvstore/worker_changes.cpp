#include "dpwa/kvstore/worker_changes.h"

#include <algorithm>

namespace dpwa::kvstore {

using Kind = WorkerChange::Kind;

std::vector<WorkerChange> WorkerChanges::look(const Epoch& epoch, const Ending& ending) {
  std::vector<WorkerChange> changes;
  const auto by_itself = [&](const MemberId& worker) {
    return std::ranges::count(epoch.left, worker.name) > 0;
  };
  for (const WorkerEntry& worker : workers_) {
    const WorkerEntry* entry = epoch.worker(worker.id.name);
    if (entry != nullptr && entry->id == worker.id) continue;
    if (epoch.is_at_end(worker.id)) {
      changes.push_back({Kind::done, worker});
    } else {
      changes.push_back({by_itself(worker.id) ? Kind::left : ending(worker), worker});
    }
  }
  for (const MemberId& id : at_end_) {
    if (epoch.has(id)) continue;
    const WorkerEntry worker{id, 0};
    changes.push_back({by_itself(id) ? Kind::left : ending(worker), worker});
  }
  for (const WorkerEntry& worker : epoch.workers) {
    const bool is_known = std::ranges::find(workers_, worker) != workers_.end();
    if (!is_known) changes.push_back({Kind::came, worker});
  }
  workers_ = epoch.workers;
  at_end_ = epoch.at_end;
  return changes;
}

}  // namespace dpwa::kvstore
