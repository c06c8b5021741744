#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/kvstore/server_engine.h"
#include "dpwa/kvstore/snapshot_retention.h"
#include "dpwa/kvstore/snapshot_schedule.h"

namespace dpwa::kvstore {

// For the status document.
struct SnapshotStatus {
  std::uint32_t number = 0;  // the last snapshot that all servers have on their disks; 0: none
  double age_s = 0;          // since it was written
  std::uint32_t started_from = 0;  // the snapshot; 0: the servers began empty
  std::uint64_t failures = 0;      // number of parts that could not be written
  bool failing = false;            // the last part could not be written either
};

// The decisions of one server about its snapshots: with which one it starts, when one begins, when
// its part of one is whole, and when all servers have theirs. Drives the engine of the server.
// Pure: time and the results of its wishes are arguments. One owner, one thread.
//
//   plan.listed(held, had_complete)   first: what the disk has
//   plan.tick(now)                    after each tick of the engine: what to do on the disk, in
//                                     this order
//   plan.loaded(), written(), completed()   once a wish is fulfilled, or not
class SnapshotPlan {
 public:
  // `every`: the time from the beginning of one snapshot to that of the next. The engine outlives
  // the plan.
  SnapshotPlan(ServerEngine& engine, Duration every, std::uint32_t keep, TimePoint now)
      : engine_(engine), schedule_(every, now), retention_{keep} {}

  struct Load {
    SnapshotId id;
  };
  struct Write {  // as a part that is ready
    SnapshotId id;
    std::vector<ShardEngine::Captured> part;
  };
  struct Complete {  // all servers have their parts
    SnapshotId id;
    TimePoint written;
  };
  using Wish = std::variant<Load, Write, Complete>;
  std::vector<Wish> tick(TimePoint now);

  void listed(std::vector<SnapshotId> held, bool had_complete);
  void loaded(const SnapshotId& id, std::vector<ShardEngine::Captured> part, TimePoint written);
  void written(const SnapshotId& id, bool stored, TimePoint now);
  void completed(const Complete& wish);
  // The server cannot start, for this reason.
  void refuse(std::string why) { refusal_ = std::move(why); }

  // For the wishes of this call of tick().
  const SnapshotRetention& retention() const { return retention_; }
  // Why this server cannot start, in one line; none when it can.
  const std::optional<std::string>& refusal() const { return refusal_; }
  SnapshotStatus status(TimePoint now) const;
  // All workers have left, and the snapshot of their last steps is not on all disks yet.
  bool last_is_due() const { return !refusal_ && schedule_.last_is_due(engine_.epoch(), view()); }

 private:
  using Slices = std::map<SliceId, ShardEngine::Captured>;

  SnapshotSchedule::View view() const;
  std::optional<Wish> start(TimePoint now);
  std::optional<Wish> collect();
  std::optional<Wish> complete();

  ServerEngine& engine_;
  SnapshotSchedule schedule_;
  SnapshotRetention retention_;
  bool loading_ = false;
  std::optional<std::string> refusal_;
  std::map<std::uint32_t, Slices> captured_;  // by snapshot
  std::uint32_t written_ = 0;                 // the last snapshot that was to be written
  std::map<std::uint32_t, TimePoint> ready_;  // when a part was written that is only ready
  SnapshotStatus status_;
  TimePoint last_{};  // when the last complete snapshot was written
};

}  // namespace dpwa::kvstore
