#include "dpwa/kvstore/barriers.h"

#include <algorithm>
#include <limits>

namespace dpwa::kvstore {

void Barriers::reached(const MemberId& worker, std::uint64_t count, bool waits) {
  Reached& known = reached_[worker.name];
  if (worker.incarnation < known.incarnation) return;
  if (worker.incarnation > known.incarnation) known = {worker.incarnation, 0, false};
  if (count < known.count) return;  // a later message overtook this one
  known.count = count;
  known.waits = waits;
}

std::vector<std::pair<std::string, std::uint64_t>> Barriers::take_passed(const Epoch& epoch) {
  std::vector<std::pair<std::string, std::uint64_t>> passed;
  if (epoch.workers.empty()) return passed;
  const auto of = [&](const MemberId& worker) {
    const auto found = reached_.find(worker.name);
    return found != reached_.end() && found->second.incarnation == worker.incarnation
               ? &found->second
               : nullptr;
  };
  std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
  for (const WorkerEntry& worker : epoch.workers) {
    const Reached* const known = of(worker.id);
    lowest = std::min(lowest, known != nullptr ? known->count : 0);
  }
  for (const WorkerEntry& worker : epoch.workers) {
    Reached* const known = of(worker.id);
    if (known == nullptr || !known->waits || known->count > lowest) continue;
    known->waits = false;
    passed.emplace_back(worker.id.name, lowest);
  }
  return passed;
}

}  // namespace dpwa::kvstore
