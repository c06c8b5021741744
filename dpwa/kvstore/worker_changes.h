#pragma once

#include <functional>
#include <vector>

#include "dpwa/kvstore/epoch.h"

namespace dpwa::kvstore {

// A worker that takes part from an epoch on, or no longer does.
struct WorkerChange {
  enum class Kind {
    came,
    done,     // has made its last step, and waits for the others
    left,     // by itself
    no_step,  // without a step that anybody waited for: by itself, or it was lost
    lost,
  };
  Kind kind = Kind::came;
  WorkerEntry worker;
  bool operator==(const WorkerChange&) const = default;
};

// The workers that come and go, for the log. Pure; one owner, one thread.
class WorkerChanges {
 public:
  // What is known of a worker that no longer takes part and is not in Epoch::left.
  using Ending = std::function<WorkerChange::Kind(const WorkerEntry& worker)>;

  // The changes since the last call; those that went first.
  std::vector<WorkerChange> look(const Epoch& epoch, const Ending& ending);

 private:
  std::vector<WorkerEntry> workers_;
  std::vector<MemberId> at_end_;
};

}  // namespace dpwa::kvstore
