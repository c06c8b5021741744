#include "dpwa/kvstore/newcomers.h"

#include <algorithm>
#include <chrono>

namespace dpwa::kvstore {
namespace {

constexpr Duration patience = std::chrono::seconds(10);

}  // namespace

void Newcomers::install(const Epoch& epoch, TimePoint now) {
  const auto is_gone = [&](const auto& each) { return !epoch.has(each.first); };
  std::erase_if(past_epoch_, is_gone);
  std::erase_if(came_, is_gone);
  for (const WorkerEntry& worker : epoch.workers) {
    if (worker.since != 0) came_.try_emplace(worker.id, now);
  }
}

bool Newcomers::passed(const MemberId& worker, std::uint64_t number) {
  std::uint64_t& last = past_epoch_[worker];
  if (number <= last) return false;
  last = number;
  return true;
}

bool Newcomers::may_begin(const Epoch& epoch, const WorkerEntry& worker) const {
  if (worker.since == 0 || came_.at(worker.id) == TimePoint::max()) return true;
  return std::ranges::all_of(epoch.workers, [&](const WorkerEntry& other) {
    if (other.since >= worker.since) return true;
    const auto past = past_epoch_.find(other.id);
    return past != past_epoch_.end() && past->second >= worker.since;
  });
}

bool Newcomers::end_patience(TimePoint now) {
  bool ends = false;
  for (auto& [worker, since] : came_) {
    if (since == TimePoint::max() || now - since < patience) continue;
    since = TimePoint::max();
    ends = true;
  }
  return ends;
}

}  // namespace dpwa::kvstore
