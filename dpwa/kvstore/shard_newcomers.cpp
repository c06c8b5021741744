// With merged pushes, a worker that counts the steps of each key apart takes part in whole steps of
// the other workers' programs, on every server: in no round that has a push of a step that began
// before its worker knew of the newcomer. So nobody in such a step waits for it. As long as others
// may still send pushes of such steps, no slice can say with which round the newcomer begins.
//
// With a bound on the staleness, such a worker begins where the slowest one is. Until its first
// push that step counts, for its own pulls and for those of the others.

#include <algorithm>
#include <chrono>

#include "dpwa/kvstore/shard_engine.h"

namespace dpwa::kvstore {
namespace {

// Workers whose programs do not fit together may wait for the newcomer in some other way. After
// this time it begins with the rounds that are open.
constexpr Duration patience = std::chrono::seconds(10);

}  // namespace

bool ShardEngine::takes_part(const Round& round, const WorkerEntry& worker) {
  return worker.since == 0 || round.begun_in >= worker.since;
}

std::uint64_t ShardEngine::first_round(const Held& held, const WorkerEntry& worker) {
  std::uint64_t first = held.round;
  for (const auto& [step, round] : held.rounds) {
    if (!takes_part(round, worker)) first = std::max(first, step + 1);
  }
  return first;
}

std::optional<std::uint64_t> ShardEngine::awaited_step(const Held& held,
                                                       const WorkerEntry& worker) const {
  const std::uint64_t next = std::max(worker.first_step, next_of(held.acknowledged, worker.id));
  if (next > 0 || worker.since == 0) return next;
  const auto begin = held.begins.find(worker.id.name);
  if (begin != held.begins.end() && begin->second.worker == worker.id) return begin->second.next;
  const bool came_later = std::ranges::any_of(
      epoch_.workers, [&](const WorkerEntry& other) { return other.since < worker.since; });
  return came_later ? std::nullopt : std::optional<std::uint64_t>(0);
}

void ShardEngine::note_begin(Held& held, const MemberId& worker, std::uint64_t step) const {
  if (rules_.merged || next_of(held.clocks, worker) > 0) return;
  const WorkerEntry* const entry = epoch_.worker(worker.name);
  if (entry == nullptr || entry->id != worker || entry->since == 0) return;
  const std::uint64_t known = next_of(held.begins, worker);
  held.begins[worker.name] = {worker, std::max(known, step)};
}

bool ShardEngine::may_begin(const std::string& worker) const {
  const WorkerEntry* const self = epoch_.worker(worker);
  if (!rules_.merged || self == nullptr || self->since == 0) return true;
  if (came_.at(self->id) == TimePoint::max()) return true;
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
    answer_once_stored(entry_of(at.first), waiter);
  for (Entry& entry : slices_) {
    if (!entry.second.pulls.empty()) serve_pulls(entry);
  }
}

void ShardEngine::note_newcomers(TimePoint now) {
  const auto is_gone = [&](const auto& each) { return !epoch_.has(each.first); };
  std::erase_if(past_epoch_, is_gone);
  std::erase_if(came_, is_gone);
  for (const WorkerEntry& worker : epoch_.workers) {
    if (worker.since != 0) came_.try_emplace(worker.id, now);
  }
}

void ShardEngine::end_patience(TimePoint now) {
  bool ends = false;
  for (auto& [worker, since] : came_) {
    if (since == TimePoint::max() || now - since < patience) continue;
    since = TimePoint::max();
    ends = true;
  }
  if (ends) answer_newcomers();
}

}  // namespace dpwa::kvstore
