#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/members/group_members.h"

namespace dpwa {
class StatusNotes;
}

namespace dpwa::collective {

using members::GroupMembers;

// The entry "collective" of a node's status document: its group, for people.
struct GroupNotes {
  GroupMembers formed;     // the last group that this process was in
  std::uint64_t view = 0;  // the number of the last view that it knows
  bool seeks = false;      // it needs another group
  std::string minority;    // why those that are left may not go on; empty: they may
  bool apart = false;      // it trains by gossip averaging meanwhile
  bool left = false;       // it is about to end
  std::string engine;
  bool waits = false;             // for others, in an exchange
  std::string exchange;           // which one
  std::vector<std::string> late;  // those of them that do not wait as well
};

// The own notes of a node, and their way into its status document. Any thread.
class NoticeBoard {
 public:
  NoticeBoard(StatusNotes& notes, std::size_t own_place) : notes_(notes), own_place_(own_place) {}

  GroupNotes read() const;
  void change(const std::function<void(GroupNotes&)>& change);

 private:
  StatusNotes& notes_;
  const std::size_t own_place_;
  mutable Mutex mutex_;
  GroupNotes current_ DPWA_GUARDED_BY(mutex_);
};

}  // namespace dpwa::collective
