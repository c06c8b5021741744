#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dpwa/base/threads.h"

namespace dpwa {

// The accounts that peers stated in their pulls from this node (PairLedger), from the Rx to
// the Tx thread, which takes it before its next round. Allocates only for a peer that is new. Any
// thread.
class Statements {
 public:
  static constexpr std::size_t max_names = 1024;

  struct Statement {
    std::uint64_t incarnation = 0;  // of the peer
    std::uint16_t taken = 0;
  };

  // The last one of a peer counts, since statements are sums. Those of further peers are dropped
  // until the next take(): their next pull states it again.
  void put(const std::string& peer, Statement statement) {
    const MutexLock lock(mutex_);
    const auto found = last_.find(peer);
    if (found == last_.end() && last_.size() >= max_names) return;
    const auto entry = found == last_.end() ? last_.emplace(peer, Entry{}).first : found;
    entry->second.statement = statement;
    if (entry->second.waits) return;
    entry->second.waits = true;
    waiting_.push_back(entry);
  }

  // hear(peer, statement) for each peer that has stated something since the last time.
  template <typename Hear>
  void take(const Hear& hear) {
    const MutexLock lock(mutex_);
    for (const auto entry : waiting_) {
      hear(entry->first, entry->second.statement);
      entry->second.waits = false;
    }
    waiting_.clear();
    if (last_.size() >= max_names) last_.clear();  // room for others than the first
  }

 private:
  struct Entry {
    Statement statement;
    bool waits = false;
  };
  using Entries = std::map<std::string, Entry>;

  Mutex mutex_;
  Entries last_ DPWA_GUARDED_BY(mutex_);
  std::vector<Entries::iterator> waiting_ DPWA_GUARDED_BY(mutex_);
};

}  // namespace dpwa
