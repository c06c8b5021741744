#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/kvstore/pending_updates.h"
#include "dpwa/kvstore/round.h"
#include "dpwa/kvstore/shard_rules.h"
#include "dpwa/kvstore/slice_state.h"
#include "dpwa/kvstore/snapshot_cut.h"

namespace dpwa::kvstore {

// The step of this worker, or 0.
std::uint64_t next_of(const std::map<std::string, Advance>& clocks, const MemberId& worker);

// A slice that a server holds: its state, and what it knows of the steps of its workers. Pure.
//
// With a bound on the staleness, a worker that counts the steps of each key apart begins where the
// slowest one is. Until its first push that step counts, for its own pulls and for those of the
// others.
struct HeldSlice : SliceState {
  struct PullWaiter {
    MemberId worker;
    std::uint64_t tag = 0;
    std::uint64_t clock = 0;
    std::uint64_t known_version = 0;
  };
  enum class Backup : std::uint8_t { unsynced, syncing, synced };

  SliceShape shape() const { return {spec.dtype, elements}; }
  // The step that this worker of the epoch pushes next, by what the slice has received.
  std::uint64_t progress(const WorkerEntry& worker, bool merged) const;
  // The step with which the worker goes on, or begins.
  std::uint64_t step_for(const Epoch& epoch, const std::string& worker, bool merged) const;
  // Without merged pushes: a worker that may be new begins with this step.
  void note_begin(const Epoch& epoch, const MemberId& worker, std::uint64_t step);
  // The lowest step that a live worker still has to push, counting acknowledged pushes only.
  std::uint64_t acknowledged_clock(const Epoch& epoch, bool merged) const;

  ValueSpec spec;
  std::uint32_t home = 0;
  std::size_t elements = 0;
  std::uint64_t bytes = 0;                      // as they count in the memory of the server
  std::map<std::string, Advance> acknowledged;  // `clocks` as the replica has them
  // --- as primary
  bool primary = false;  // it was the primary in the last epoch
  std::map<std::uint64_t, Round> rounds;
  PendingUpdates pending;
  std::vector<PullWaiter> pulls;
  // Without merged pushes: the step with which each worker began that counts each key apart and has
  // pushed nothing.
  std::map<std::string, Advance> begins;
  SliceCapture capture;
  std::pair<MemberId, std::uint64_t> placed;  // the last state: by whom, and its tag
  Backup backup = Backup::unsynced;
  TimePoint asked{};  // when the backup was asked last
  // --- as backup: it was compared with the primary in this epoch
  bool compared = false;

 private:
  std::uint64_t first_round(const WorkerEntry& worker) const;
  std::optional<std::uint64_t> awaited_step(const Epoch& epoch, const WorkerEntry& worker) const;
};

// Whether a round waits for this worker, once all others have pushed (Newcomers).
bool takes_part(const Round& round, const WorkerEntry& worker);

}  // namespace dpwa::kvstore
