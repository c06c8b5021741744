#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "dpwa/base/threads.h"
#include "dpwa/rules/lineage.h"

namespace dpwa {

// The peers that have received this node's weights in full, from the Rx thread to the trainer,
// which takes the notes when it needs them. A peer waits once, with its last note. Any thread.
class ServedNotes {
 public:
  using Given = std::map<std::string, GivenWeights, std::less<>>;  // by name

  void gave(const std::string& peer, const GivenWeights& weights) {
    const MutexLock lock(mutex_);
    given_.insert_or_assign(peer, weights);
  }
  void gave_final(const std::string& peer) {
    const MutexLock lock(mutex_);
    final_.insert(peer);
  }

  // To nodes of the file that may have taken them over.
  Given take_given() {
    const MutexLock lock(mutex_);
    return std::exchange(given_, {});
  }
  // To peers that hold the final snapshot for their average.
  std::set<std::string> take_final() {
    const MutexLock lock(mutex_);
    return std::exchange(final_, {});
  }

 private:
  Mutex mutex_;
  Given given_ DPWA_GUARDED_BY(mutex_);
  std::set<std::string> final_ DPWA_GUARDED_BY(mutex_);
};

}  // namespace dpwa
