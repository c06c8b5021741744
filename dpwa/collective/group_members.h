#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/members/view.h"

namespace dpwa {
struct Config;
}

namespace dpwa::collective {

// The processes of one group, in ascending order of their positions in the cluster file. The rank
// of a member is its index here.
struct GroupMembers {
  struct Member {
    std::size_t place = 0;
    members::ProcessId id;  // one that was started again is another member

    friend bool operator==(const Member&, const Member&) = default;
  };

  std::uint64_t view = 0;  // for which the group has formed; 0: none
  bool admits = false;     // with those that join in that view
  std::vector<Member> members;

  friend bool operator==(const GroupMembers&, const GroupMembers&) = default;
  // Of all groups of a run; a later one has a higher number.
  std::uint64_t number() const { return 2 * view + (admits ? 1 : 0); }

  const Member* find(std::size_t place) const;  // null: not among them
  bool includes(const members::ProcessId& id) const;
  std::optional<int> rank_of(std::size_t place) const;
  // Whether all of them are in the view.
  bool are_in(const members::View& view) const;
  // Whether all that vote in the view are among them.
  bool have_voters_of(const members::View& view) const;
};

// Those that vote in the view; `admits`: and those that join.
GroupMembers members_of(const members::View& view, bool admits, const Config& config);

}  // namespace dpwa::collective
