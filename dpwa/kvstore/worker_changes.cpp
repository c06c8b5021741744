#include "dpwa/kvstore/worker_changes.h"

#include <algorithm>

namespace dpwa::kvstore {

using Kind = WorkerChange::Kind;

std::vector<WorkerChange> WorkerChanges::look(const Epoch& epoch, const Ending& ending) {
  std::vector<WorkerChange> changes;
  for (const WorkerEntry& worker : workers_) {
    const bool by_itself = std::ranges::count(epoch.left, worker.id.name) > 0;
    const WorkerEntry* entry = epoch.worker(worker.id.name);
    if (entry != nullptr && entry->id == worker.id && (!by_itself || *entry == worker)) continue;
    const Kind kind = by_itself ? Kind::left : ending(worker);
    const bool told = ended_.contains(worker.id);
    if (kind == Kind::lost) {
      ended_.erase(worker.id);
    } else if (!told) {
      std::erase_if(ended_, [&](const MemberId& other) { return other.name == worker.id.name; });
      ended_.insert(worker.id);
    }
    if (kind == Kind::lost || !told) changes.push_back({kind, worker});
  }
  for (const WorkerEntry& worker : epoch.workers) {
    const bool is_known = std::ranges::find(workers_, worker) != workers_.end();
    if (!is_known && !ended_.contains(worker.id)) changes.push_back({Kind::came, worker});
  }
  workers_ = epoch.workers;
  return changes;
}

}  // namespace dpwa::kvstore
