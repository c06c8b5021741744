#include "dpwa/kvstore/held_slice.h"

#include <algorithm>

namespace dpwa::kvstore {

std::uint64_t next_of(const std::map<std::string, Advance>& clocks, const MemberId& worker) {
  const auto found = clocks.find(worker.name);
  return found != clocks.end() && found->second.worker == worker ? found->second.next : 0;
}

bool takes_part(const Round& round, const WorkerEntry& worker) {
  return worker.since == 0 || round.begun_in() >= worker.since;
}

std::uint64_t HeldSlice::progress(const WorkerEntry& worker, bool merged) const {
  std::uint64_t next = std::max(worker.first_step, next_of(clocks, worker.id));
  if (merged) next = std::max(next, round);
  for (const auto& [step, open] : rounds) {
    if (open.has(worker.id)) next = std::max(next, step + 1);
  }
  return next;
}

// The first step from which on all rounds wait for this worker.
std::uint64_t HeldSlice::first_round(const WorkerEntry& worker) const {
  std::uint64_t first = round;
  for (const auto& [step, open] : rounds) {
    if (!takes_part(open, worker)) first = std::max(first, step + 1);
  }
  return first;
}

// A worker that comes, or comes back, begins where the others are: with the open round, or with the
// step of the slowest other worker.
std::uint64_t HeldSlice::step_for(const Epoch& epoch, const std::string& worker,
                                  bool merged) const {
  const WorkerEntry* const self = epoch.worker(worker);
  if (self == nullptr) return 0;
  if (merged) return std::max(progress(*self, merged), first_round(*self));
  std::uint64_t lowest = unbounded_staleness;
  for (const WorkerEntry& each : epoch.workers) {
    const std::uint64_t next = each.id == self->id ? 0 : next_of(clocks, each.id);
    if (next > 0) lowest = std::min(lowest, next);
  }
  const std::uint64_t own = std::max(self->first_step, next_of(clocks, self->id));
  return lowest == unbounded_staleness ? own : std::max(own, lowest);
}

void HeldSlice::note_begin(const Epoch& epoch, const MemberId& worker, std::uint64_t step) {
  if (next_of(clocks, worker) > 0) return;
  const WorkerEntry* const entry = epoch.worker(worker.name);
  if (entry == nullptr || entry->id != worker || entry->since == 0) return;
  begins[worker.name] = {worker, std::max(next_of(begins, worker), step)};
}

// Without merged pushes: the step that a worker has not made yet, for those that wait for it. None
// for one that has come, and not yet to this slice: nobody waits.
std::optional<std::uint64_t> HeldSlice::awaited_step(const Epoch& epoch,
                                                     const WorkerEntry& worker) const {
  const std::uint64_t next = std::max(worker.first_step, next_of(acknowledged, worker.id));
  if (next > 0 || worker.since == 0) return next;
  const auto begin = begins.find(worker.id.name);
  if (begin != begins.end() && begin->second.worker == worker.id) return begin->second.next;
  const bool came_later = std::ranges::any_of(
      epoch.workers, [&](const WorkerEntry& other) { return other.since < worker.since; });
  return came_later ? std::nullopt : std::optional<std::uint64_t>(0);
}

std::uint64_t HeldSlice::acknowledged_clock(const Epoch& epoch, bool merged) const {
  if (merged) return pending.round_before().value_or(round);
  std::uint64_t lowest = unbounded_staleness;
  for (const WorkerEntry& worker : epoch.workers) {
    lowest = std::min(lowest, awaited_step(epoch, worker).value_or(unbounded_staleness));
  }
  return lowest;
}

}  // namespace dpwa::kvstore
