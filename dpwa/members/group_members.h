#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/members/group_engine.h"
#include "dpwa/members/view.h"

namespace dpwa::members {

// The processes of one group, in ascending order of their positions in the cluster file. The rank
// of a member is its index here.
struct GroupMembers {
  struct Member {
    std::size_t place = 0;
    ProcessId id;  // one that was started again is another member

    friend bool operator==(const Member&, const Member&) = default;
  };

  std::uint64_t view = 0;  // for which the group has formed; 0: none
  bool admits = false;     // with those that join in that view
  std::vector<Member> members;

  friend bool operator==(const GroupMembers&, const GroupMembers&) = default;
  // Of all groups of a run; a later one has a higher number.
  std::uint64_t number() const { return 2 * view + (admits ? 1 : 0); }

  const Member* find(std::size_t place) const;  // null: not among them
  bool includes(const ProcessId& id) const;
  std::optional<int> rank_of(std::size_t place) const;
  // Whether all of them are in the view.
  bool are_in(const View& view) const;
  // Whether all that vote in the view are among them.
  bool have_voters_of(const View& view) const;
  // A member that is not in the view any more; none: all are.
  std::optional<int> rank_outside(const View& view) const;
};

// Those that vote in the view; `admits`: and those that join. `names`: of the cluster file.
GroupMembers members_of(const View& view, bool admits, const std::vector<std::string>& names);

// What a process that looks for a group knows beside the view.
struct GroupSearch {
  bool seeks = false;           // it has none that it can use
  const GroupMembers& current;  // the group in use, or the last one
  bool needs_all = false;       // a group of all names alone, once
};

// The group that this process needs; none: none for now. A process that joins is admitted between
// two steps, when the members have a group: beside that one. A group that takes the place of one
// that has failed is of the voters alone, because they repeat a step, for which the program of the
// one that joins has not prepared; so is one with a voter that lost the group in which it joined.
std::optional<GroupMembers> wanted_group(const View& view, const ProcessId& self,
                                         const std::vector<std::string>& names,
                                         const GroupSearch& search);

// A member that will not come any more, quoted, with the reason; empty: all may. Whoever waits for
// the others while a group forms need not wait for the limit, even where no view follows.
std::string gone_member(const GroupMembers& forming, const std::map<std::string, Peer>& peers);

// Whether a group of these, which has formed, has been left behind by the views.
bool is_left_behind(const GroupMembers& formed, const View& view);

// Whether a step whose exchange has ended well on this member of a group counts, where its view is
// no longer that of the group, or the next one is being decided.
enum class StepCounts : std::uint8_t {
  yes,        // a member that has the result of a step hands it to those that do not
  no,         // the others go on without this process
  in_a_view,  // once it can be completed in a view: in this one, or in the next
};
StepCounts step_counts(const GroupMembers& group, const View& view, const ProcessId& self);

}  // namespace dpwa::members
