#pragma once

#include <array>
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
    bool operator==(const Statement&) const = default;
  };

  // The statements of a peer are kept in their order, because others may speak in its name: were
  // only the last one kept, a value that is repeated often enough would hide what the peer itself
  // states. When there are more than a few, a new one replaces the last, since statements are sums.
  // Statements of further peers are dropped until the next take(): their next pull repeats them.
  void put(const std::string& peer, Statement statement) {
    const MutexLock lock(mutex_);
    const auto found = last_.find(peer);
    if (found == last_.end() && last_.size() >= max_names) return;
    const auto entry = found == last_.end() ? last_.emplace(peer, Entry{}).first : found;
    auto& [statements, count] = entry->second;
    if (count > 0 && statements.at(count - 1) == statement) return;
    if (count == 0) waiting_.push_back(entry);
    if (count < statements.size()) ++count;
    statements.at(count - 1) = statement;
  }

  // hear(peer, statement) for what each peer has stated since the last time.
  template <typename Hear>
  void take(const Hear& hear) {
    const MutexLock lock(mutex_);
    for (const auto entry : waiting_) {
      auto& [statements, count] = entry->second;
      for (std::size_t i = 0; i < count; ++i) hear(entry->first, statements.at(i));
      count = 0;
    }
    waiting_.clear();
    if (last_.size() >= max_names) last_.clear();  // room for others than the first
  }

 private:
  struct Entry {
    std::array<Statement, 8> statements;  // that wait, `count` of them
    std::size_t count = 0;
  };
  using Entries = std::map<std::string, Entry>;

  Mutex mutex_;
  Entries last_ DPWA_GUARDED_BY(mutex_);
  std::vector<Entries::iterator> waiting_ DPWA_GUARDED_BY(mutex_);
};

}  // namespace dpwa
