#include <algorithm>
#include <stdexcept>
#include <utility>

#include "dpwa/kvstore/shard_engine.h"

namespace dpwa::kvstore {

void ShardEngine::announce_snapshot(std::uint32_t number) {
  if (cut_.announce(number)) capture_untouched();
}

void ShardEngine::passed_snapshot(const MemberId& worker, std::uint32_t number) {
  if (epoch_.has(worker) && cut_.passed(worker, number)) capture_untouched();
}

// Once all workers are past the snapshot, slices that no later push has changed are in the state
// that the snapshot needs, and captures under way are complete.
void ShardEngine::capture_untouched() {
  if (snapshot() == 0 || epoch_.number == 0 || !cut_.all_past(epoch_)) return;
  for (Entry& entry : slices_) {
    Held& held = entry.second;
    if (!is_primary(held.home)) continue;
    if (!held.capture.is_under_way() && held.snapshot < snapshot()) {
      held.capture.begin(held, snapshot());
      held.snapshot = snapshot();
    }
    end_capture(entry);
  }
}

void ShardEngine::end_capture(Entry& entry) {
  auto& [id, held] = entry;
  if (!held.capture.is_complete(epoch_, cut_, rules_.merged)) return;
  auto [number, state] = held.capture.take();
  captured_.push_back({number, id, held.spec, std::move(state)});
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
