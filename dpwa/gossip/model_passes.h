#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/gossip/parameters.h"
#include "dpwa/log/log.h"
#include "dpwa/rules/progress.h"
#include "dpwa/snapshot/snapshot_store.h"

namespace dpwa {

// The passes over a model's parameters: publishing copies them into the snapshot store, blending
// mixes in what has landed, and one pass does both when both are due. On an accelerator a copy may
// outlast the call that begins it; complete() swaps the snapshot in when the copy is complete.
// Trainer thread only.
class ModelPasses {
 public:
  ModelPasses(Parameters& parameters, SnapshotStore& store);  // both outlive it

  // Takes a free buffer for the next snapshot. There is none when the device still works on the
  // last one, or when readers hold every buffer. Then nothing is published until the next open().
  // `step`: how long a step usually takes; zero: unknown. Where a copy takes less, the device may
  // still work on the last one but have no other: the program runs a step ahead of the device.
  void open(Duration step = {});

  // Blends into the parameters. With a buffer open the same pass over memory fills it, so that
  // begin() need not copy: nothing may change the parameters in between.
  void blend(const Landing& landing, double factor);
  // Overwrites the parameters.
  void assign(std::span<const std::byte> snapshot);

  // Begins to copy the parameters into the open buffer. `progress`: of this moment, without version
  // and loss. `loss` is read when the copy is complete, because it may arrive with the copy.
  void begin(const std::function<double()>& loss, const Progress& progress);

  // Swaps the snapshots in whose copies are complete; false: there is none. Never waits.
  bool complete();
  bool under_way() const { return !copying_.empty(); }
  std::uint64_t published() const { return version_; }
  // Whether what was published last holds all that came from others so far.
  bool is_up_to_date() const { return published_changes_ == changes_; }

  // Publishes the parameters as they are, in place of a snapshot whose copy is under way; waits for
  // the copy and for a free buffer until `give_up`. False when there was none.
  bool publish_now(const Progress& progress, TimePoint give_up);

  double loss() const { return loss_; }  // of the last snapshot; NaN before the first

 private:
  struct Copy {
    SnapshotStore::Writer writer;
    std::function<double()> loss;
    Progress progress;
    std::uint64_t changes;
  };

  std::size_t most_copies(Duration step);
  void swap_in(Copy copy);

  Parameters& parameters_;
  SnapshotStore& store_;
  std::uint64_t version_ = 0;
  std::uint64_t changes_ = 0;  // by what came from others
  std::uint64_t published_changes_ = 0;
  double loss_;
  std::optional<SnapshotStore::Writer> open_;
  bool filled_ = false;  // a blend has filled the open buffer
  std::vector<Copy> copying_;
  std::optional<Duration> copy_time_;  // of a copy for which the device had nothing else to do
  std::optional<bool> told_fits_;      // into a step, as was logged last
  LogLimiter log_limiter_;
};

}  // namespace dpwa
