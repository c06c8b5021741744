#include "dpwa/kvstore/snapshot_cut.h"

#include <algorithm>
#include <utility>

namespace dpwa::kvstore {
namespace {

void forget_the_gone(std::map<MemberId, std::uint32_t>& numbers, const Epoch& epoch) {
  std::erase_if(numbers, [&](const auto& each) { return !epoch.has(each.first); });
}

// Whether the number is news.
bool raise(std::uint32_t& last, std::uint32_t number) {
  if (number <= last) return false;
  last = number;
  return true;
}

bool has(const std::map<MemberId, std::uint32_t>& numbers, const MemberId& worker,
         std::uint32_t number) {
  const auto found = numbers.find(worker);
  return found != numbers.end() && found->second >= number;
}

}  // namespace

void SnapshotCut::install(const Epoch& epoch) {
  for (const WorkerEntry& each : workers_) {
    const bool has_left = std::ranges::find(epoch.left, each.id.name) != epoch.left.end();
    if (!has_left && !epoch.has(each.id)) torn_ = number_;
  }
  workers_ = epoch.workers;
  forget_the_gone(passed_, epoch);
}

bool SnapshotCut::announce(std::uint32_t number) {
  return raise(number_, number);
}

bool SnapshotCut::passed(const MemberId& worker, std::uint32_t number) {
  return raise(passed_[worker], number);
}

bool SnapshotCut::has_passed(const MemberId& worker, std::uint32_t number) const {
  return has(passed_, worker, number);
}

bool SnapshotCut::all_past(const Epoch& epoch) const {
  return std::ranges::all_of(
      epoch.workers, [this](const WorkerEntry& worker) { return has_passed(worker.id, number_); });
}

void SliceCapture::install(const Epoch& epoch) {
  forget_the_gone(stated_, epoch);
}

void SliceCapture::begin(const SliceState& state, std::uint32_t number) {
  DPWA_INVARIANT(number > state.snapshot, "snapshots of a slice begin in ascending order", number,
                 state.snapshot);
  under_way_ = Taken{number, state};
}

void SliceCapture::note(DType dtype, const Forward& change, bool merged) {
  if (!merged) {
    for (const Advance& each : change.advances) raise(stated_[each.worker], change.snapshot);
  }
  if (!under_way_ || change.snapshot >= under_way_->number) return;
  SliceState& state = under_way_->state;
  const std::uint64_t version = state.version + 1;  // without the pushes after the snapshot
  state.apply(dtype, change);
  state.version = version;
}

bool SliceCapture::is_complete(const Epoch& epoch, const SnapshotCut& cut, bool merged) const {
  if (!under_way_ || merged) return is_under_way();
  return std::ranges::all_of(epoch.workers, [&](const WorkerEntry& worker) {
    return cut.has_passed(worker.id, under_way_->number) ||
           has(stated_, worker.id, under_way_->number);
  });
}

SliceCapture::Taken SliceCapture::take() {
  return *std::exchange(under_way_, std::nullopt);
}

}  // namespace dpwa::kvstore
