// With merged pushes, a worker that counts the steps of each key apart takes part in whole steps of
// the other workers' programs: in all rounds to which a push belongs whose step began after its
// worker knew of the newcomer, on every server. As long as others may still send pushes of earlier
// steps, no slice can say with which round the newcomer begins.

#include <algorithm>
#include <chrono>

#include "dpwa/kvstore/shard_engine.h"

namespace dpwa::kvstore {
namespace {

// Workers whose programs push different keys in a step may wait for the newcomer and hold it up.
// After this time it begins with the rounds that are open.
constexpr Duration patience = std::chrono::seconds(10);

}  // namespace

bool ShardEngine::takes_part(const Round& round, const WorkerEntry& worker) {
  return worker.since == 0 || round.begun_in >= worker.since;
}

bool ShardEngine::may_begin(const std::string& worker) const {
  const WorkerEntry* const self = epoch_.worker(worker);
  if (!rules_.merged || all_may_begin_ || self == nullptr || self->since == 0) return true;
  return std::ranges::all_of(epoch_.workers, [&](const WorkerEntry& other) {
    if (other.since >= self->since) return true;
    const auto past = past_epoch_.find(other.id);
    return past != past_epoch_.end() && past->second >= self->since;
  });
}

void ShardEngine::passed_epoch(const MemberId& worker, std::uint64_t number) {
  if (!epoch_.has(worker)) return;
  std::uint64_t& last = past_epoch_[worker];
  if (number <= last) return;
  last = number;
  answer_newcomers();
}

void ShardEngine::answer_newcomers() {
  // Those that have to go on waiting come back into it.
  for (const auto& [at, waiter] : std::exchange(newcomers_, {}))
    answer_once_stored(*slices_.find(at.first), waiter);
  for (Entry& entry : slices_) {
    if (!entry.second.pulls.empty()) serve_pulls(entry);
  }
}

void ShardEngine::end_patience(TimePoint now) {
  if (all_may_begin_ || now - installed_ < patience) return;
  all_may_begin_ = true;
  answer_newcomers();
}

}  // namespace dpwa::kvstore
