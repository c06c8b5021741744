#include "dpwa/kvstore/worker_changes.h"

#include <algorithm>

namespace dpwa::kvstore {

using Kind = WorkerChange::Kind;

std::vector<WorkerChange> WorkerChanges::look(const Epoch& epoch, const Ending& ending) {
  std::vector<WorkerChange> changes;
  for (const WorkerEntry& worker : workers_) {
    const WorkerEntry* entry = epoch.worker(worker.id.name);
    if (entry != nullptr && entry->id == worker.id) continue;
    const bool by_itself = std::ranges::count(epoch.left, worker.id.name) > 0;
    changes.push_back({by_itself ? Kind::left : ending(worker), worker});
  }
  for (const WorkerEntry& worker : epoch.workers) {
    const bool is_known = std::ranges::find(workers_, worker) != workers_.end();
    if (!is_known) changes.push_back({Kind::came, worker});
  }
  workers_ = epoch.workers;
  return changes;
}

}  // namespace dpwa::kvstore
