#include <algorithm>
#include <stdexcept>

#include "dpwa/kvstore/shard_engine.h"

namespace dpwa::kvstore {

void ShardEngine::announce_snapshot(std::uint32_t number) {
  if (number <= snapshot_) return;
  snapshot_ = number;
  capture_untouched();
}

void ShardEngine::passed_snapshot(const MemberId& worker, std::uint32_t number) {
  if (!epoch_.has(worker)) return;
  std::uint32_t& last = passed_[worker];
  if (number <= last) return;
  last = number;
  capture_untouched();
}

// Whether this worker has no more pushes from before this snapshot.
bool ShardEngine::is_past(const Held& held, const MemberId& worker, std::uint32_t number) const {
  const auto told = passed_.find(worker);
  if (told != passed_.end() && told->second >= number) return true;
  const auto pushed = held.snapshots.find(worker);
  return pushed != held.snapshots.end() && pushed->second >= number;
}

// Once all workers are past the snapshot, slices that no later push has changed are in the state
// that the snapshot needs, and captures under way are complete.
void ShardEngine::capture_untouched() {
  if (snapshot_ == 0 || epoch_.number == 0) return;
  const bool all_past = std::ranges::all_of(epoch_.workers, [&](const WorkerEntry& worker) {
    const auto told = passed_.find(worker.id);
    return told != passed_.end() && told->second >= snapshot_;
  });
  if (!all_past) return;
  for (Entry& entry : slices_) {
    Held& held = entry.second;
    if (!is_primary(held.home)) continue;
    if (!held.capture && held.snapshot < snapshot_) {
      begin_capture(held, snapshot_);
      held.snapshot = snapshot_;
    }
    end_capture(entry);
  }
}

// Called before an update that does not belong to snapshot `number`. An older capture that is not
// complete ends.
void ShardEngine::begin_capture(Held& held, std::uint32_t number) {
  DPWA_INVARIANT(number > held.snapshot, "snapshots of a slice begin in ascending order", number,
                 held.snapshot);
  held.capture = Capture{number, static_cast<const SliceState&>(held)};
}

// Called after an update. An update by a push from before the snapshot belongs to the snapshot,
// even if later pushes of faster workers came first.
void ShardEngine::capture(Entry& entry, const Forward& change) {
  auto& [id, held] = entry;
  if (!rules_.merged) {
    for (const Advance& each : change.advances) {
      std::uint32_t& last = held.snapshots[each.worker];
      last = std::max(last, change.snapshot);
    }
  }
  if (!held.capture) return;
  if (change.snapshot < held.capture->number) {
    SliceState& state = held.capture->state;
    const std::uint64_t version = state.version + 1;  // without the pushes after the snapshot
    state.apply(held.spec.dtype, change);
    state.version = version;
  }
  end_capture(entry);
}

// A capture is complete when no worker has more pushes from before the snapshot. Rounds close in
// order, so with merged pushes it is complete at once.
void ShardEngine::end_capture(Entry& entry) {
  auto& [id, held] = entry;
  if (!held.capture) return;
  const auto past = [&](const WorkerEntry& worker) {
    return is_past(held, worker.id, held.capture->number);
  };
  if (!rules_.merged && !std::ranges::all_of(epoch_.workers, past)) return;
  captured_.push_back({held.capture->number, id, held.spec, std::move(held.capture->state)});
  held.capture.reset();
}

void ShardEngine::restore(const SliceId& slice, const ValueSpec& spec, std::uint32_t servers,
                          SliceState state) {
  const auto found = slice_at(slice.key, spec.elements(), servers, slice.index);
  if (!found) throw std::out_of_range("key " + slice.key.text() + " has no such slice");
  const Slice& cut = *found;
  DPWA_INVARIANT(epoch_.number == 0, "slices are restored before the first epoch", epoch_.number);
  DPWA_INVARIANT(state.values && state.values->size() == cut.elements.count * size_of(spec.dtype),
                 "a slice is restored with all its values", cut.elements.count, spec.dtype);
  Held& held = slices_[slice];
  static_cast<SliceState&>(held) = std::move(state);
  held.spec = spec;
  held.home = cut.server;
  held.elements = cut.elements.count;
  count_bytes(held);
  held.stamp = 0;
  clock_ = std::max(clock_, held.round);
  for (const auto& [name, clock] : held.clocks) clock_ = std::max(clock_, clock.next);
}

}  // namespace dpwa::kvstore
