#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/settings.h"
#include "dpwa/base/threads.h"

namespace dpwa {
class StatusNotes;
}

namespace dpwa::collective {

// The processes of one group, in ascending order of their positions in the cluster file. The rank
// of a member is its index here.
struct GroupMembers {
  struct Member {
    std::size_t place = 0;
    std::uint64_t incarnation = 0;  // of its process: one that was started again is another member

    friend bool operator==(const Member&, const Member&) = default;
  };

  std::uint64_t epoch = 0;  // counts the groups of a run; 0: none
  std::vector<Member> members;

  friend bool operator==(const GroupMembers&, const GroupMembers&) = default;
  const Member* find(std::size_t place) const;  // null: not among them
  bool includes(std::size_t place, std::uint64_t incarnation) const;
  std::optional<int> rank_of(std::size_t place) const;
  // The hash of epoch and members: those that form a group compare it.
  std::uint64_t hash() const;
};

// The entry "collective" of a node's status document: its group.
struct GroupNotes {
  GroupMembers formed;            // the last group that this process was in
  bool seeks = false;             // it needs another group
  bool apart = false;             // it trains by gossip averaging meanwhile
  bool left = false;              // it is about to end, and comes into no group any more
  GroupMembers vote;              // the group that it has agreed to form last
  std::uint16_t store_port = 0;   // where it hosts the store of that group; 0: it does not
  std::vector<std::size_t> lost;  // members of `formed` that it has given up
  std::string engine;
  Settings terms;                 // must be the same on all members; empty: not stated
  bool waits = false;             // for others, in an exchange
  std::string exchange;           // which one
  std::vector<std::string> late;  // those of them that do not wait as well
};

// Reads the entry of a status document; all fields have their defaults when it has no group. An
// entry with positions beyond the `nodes` of the file, or an impossible epoch, is ignored.
GroupNotes group_notes_in(const nlohmann::json& document, std::size_t nodes);
nlohmann::json to_json(const GroupNotes& notes, std::size_t own_place);

// The own notes of a node, and their way into its status document. Any thread.
class NoticeBoard {
 public:
  NoticeBoard(StatusNotes& notes, std::size_t own_place, Settings terms)
      : notes_(notes), own_place_(own_place) {
    current_.terms = std::move(terms);
  }

  GroupNotes read() const;
  void change(const std::function<void(GroupNotes&)>& change);

 private:
  StatusNotes& notes_;
  const std::size_t own_place_;
  mutable Mutex mutex_;
  GroupNotes current_ DPWA_GUARDED_BY(mutex_);
};

}  // namespace dpwa::collective
