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

// Whether this worker will push nothing more of before this snapshot.
bool ShardEngine::is_past(const Held& held, const MemberId& worker, std::uint32_t number) const {
  const auto told = passed_.find(worker);
  if (told != passed_.end() && told->second >= number) return true;
  const auto pushed = held.snapshots.find(worker);
  return pushed != held.snapshots.end() && pushed->second >= number;
}

// Slices that no push from after the snapshot has changed are as the snapshot needs them once all
// workers are past it, and captures under way are complete.
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

// Before an update that belongs after snapshot `number`. An older one that is not complete ends.
void ShardEngine::begin_capture(Held& held, std::uint32_t number) {
  held.capture = Capture{number, static_cast<const SliceState&>(held)};
}

// An update was made. One of a push from before the snapshot belongs to it, too, although others
// were faster.
void ShardEngine::capture(Entry& entry, const Forward& change) {
  auto& [id, held] = entry;
  if (!rules_.merged) {
    for (const Advance& each : change.advances) {
      std::uint32_t& last = held.snapshots[each.worker];
      last = std::max(last, change.snapshot);
    }
  }
  if (!held.capture) return;
  if (change.snapshot < held.capture->number) held.capture->state.apply(held.spec.dtype, change);
  end_capture(entry);
}

// It is complete when no worker will push for a step before it. Rounds are closed in their order,
// so with merged pushes that is at once.
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
  Held& held = slices_[slice];
  static_cast<SliceState&>(held) = std::move(state);
  held.spec = spec;
  held.home = cut.server;
  held.elements = cut.elements.count;
  held.stamp = 0;
  clock_ = std::max(clock_, held.round);
  for (const auto& [name, clock] : held.clocks) clock_ = std::max(clock_, clock.next);
}

}  // namespace dpwa::kvstore
