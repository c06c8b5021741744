#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "dpwa/base/invariant.h"
#include "dpwa/kvstore/epoch.h"
#include "dpwa/kvstore/slice_state.h"

namespace dpwa::kvstore {

// A snapshot is a cut through the steps: it has all pushes of each worker up to some step, in all
// slices of all servers, and none after it. No server or worker waits for it. A worker learns the
// number of the snapshot from answers. With each push it states the last number that it knew of
// when the step began (Lai and Yang, "On distributed snapshots", 1987). The pushes before that step
// belong to the snapshot, even if a server receives them after the push of a faster worker. With
// merged pushes a round belongs to the snapshot unless one of its workers knew of the snapshot.
//
// What one server has heard: the number of the last snapshot, and which workers are past which one.
// Pure.
class SnapshotCut {
 public:
  void install(const Epoch& epoch);
  std::uint32_t number() const { return number_; }
  // Each returns whether that is news.
  bool announce(std::uint32_t number);
  // All pushes of this worker of the epoch that state an earlier snapshot have been acknowledged,
  // and no more follow.
  bool passed(const MemberId& worker, std::uint32_t number);
  bool has_passed(const MemberId& worker, std::uint32_t number) const;
  // All workers are past the last snapshot.
  bool all_past(const Epoch& epoch) const;
  // A worker was lost since the last snapshot began. It may have pushed some slices of the step
  // with which the snapshot begins, and not the others, be it past the snapshot or not: with merged
  // pushes the rounds of that step then lie on both sides of the cut.
  bool is_torn() const { return number_ > 0 && torn_ == number_; }

 private:
  std::uint32_t number_ = 0;
  std::uint32_t torn_ = 0;
  std::vector<WorkerEntry> workers_;  // of the last epoch
  std::map<MemberId, std::uint32_t> passed_;
};

// The state of one slice as a snapshot is to have it, while pushes may still belong to it.
class SliceCapture {
 public:
  void install(const Epoch& epoch);
  void clear() { *this = {}; }
  // Before an update that does not belong to snapshot `number`, or once no more updates belong to
  // it. An older capture that is not complete ends.
  void begin(const SliceState& state, std::uint32_t number);
  // An update has been made, of pushes one by one or of merged ones. One by a push from before the
  // snapshot belongs to the snapshot, even if later pushes of faster workers came first.
  void note(DType dtype, const Forward& change, bool merged);
  bool is_under_way() const { return under_way_.has_value(); }
  // Whether none of these workers has more pushes for the snapshot. Rounds close in order, so with
  // merged pushes that is so at once.
  bool is_complete(const Epoch& epoch, const SnapshotCut& cut, bool merged) const;
  struct Taken {
    std::uint32_t number = 0;
    SliceState state;
  };
  Taken take();  // one that is complete

 private:
  std::optional<Taken> under_way_;
  std::map<MemberId, std::uint32_t> stated_;  // with each worker's last push, one by one
};

}  // namespace dpwa::kvstore
