#include <algorithm>

#include "dpwa/kvstore/shard_engine.h"

namespace dpwa::kvstore {

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
  const auto is_past = [&](const WorkerEntry& worker) {
    const auto found = held.snapshots.find(worker.id);
    return found != held.snapshots.end() && found->second >= held.capture->number;
  };
  if (!rules_.merged && !std::ranges::all_of(epoch_.workers, is_past)) return;
  captured_.push_back({held.capture->number, id, held.spec, std::move(held.capture->state)});
  held.capture.reset();
}

void ShardEngine::restore(const SliceId& slice, const ValueSpec& spec, std::uint32_t servers,
                          SliceState state) {
  const auto cuts = cut_into_slices(slice.key, spec.elements(), servers);
  Held& held = slices_[slice];
  static_cast<SliceState&>(held) = std::move(state);
  held.spec = spec;
  held.home = cuts.at(slice.index).server;
  held.elements = cuts[slice.index].elements.count;
  held.stamp = 0;
  clock_ = std::max(clock_, held.round);
  for (const auto& [name, clock] : held.clocks) clock_ = std::max(clock_, clock.next);
}

}  // namespace dpwa::kvstore
