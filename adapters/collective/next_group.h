#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "adapters/collective/membership_notes.h"

namespace dpwa::collective {

// One node of the cluster file as another one sees it at one moment.
struct MemberView {
  enum class Reach {
    answers,
    refused,  // its machine says that nothing listens there: gone, for now at least
    silent,
  };
  std::string name;
  Reach reach = Reach::silent;
  bool given_up = false;          // silent for so long that it counts as lost
  bool finished = false;          // says that it has done with training
  std::uint64_t incarnation = 0;  // of the process that answered last
  GroupNotes notes{};             // its last ones
  // A setting in which it differs from this node and which must be the same in a group; empty: none
  // is known. A node that differs is never admitted.
  std::string differs{};
  std::string backend{};  // that it runs; empty: not said
};

struct NextGroup {
  enum class Step {
    wait,      // look again in a while
    host,      // open a store for `group` and tell its port
    follow,    // form `group`, whose store the node at `host` has opened at `port`
    minority,  // those that are left may not go on as the group; `why` says who is missing
  };
  Step step = Step::wait;
  GroupMembers group{};
  std::size_t host = 0;
  std::uint16_t port = 0;
  std::string why{};
};

// Decides the next action of a node towards its next group. There is no coordinator: all nodes
// apply this rule to the status documents of all nodes. The lowest position among the remaining
// nodes hosts the store. Pure.
//
// A group that lost members continues if it has the majority of the last group. Members that have
// said that they leave, or that answer as another process, do not count; a refused connection says
// neither. Of the others more than half must be there, or exactly half including the lowest
// position. The same must hold for every group that a member has voted for since then, because that
// group may have formed: dynamic voting (Jajodia, Mutchler 1990; Lotem, Keidar, Dolev 1997).
//
// Before the first group of a run all nodes of the file must be there. A node that is in no group
// while others train in one waits until they admit it. `admits`: this node is between two steps,
// where it can admit others.
//
// `views`: by position in the file; at `self`: the node's own status. `failed`: the epoch of its
// own last attempt, if that failed.
NextGroup next_group(const std::vector<MemberView>& views, std::size_t self, bool admits,
                     std::uint64_t failed = 0);

// Whether the group of `self` continues without the node at `self`, which then joins as a new node.
bool is_left_behind(const std::vector<MemberView>& views, std::size_t self);

// Nodes that wait for admission to the group of `self`.
bool has_newcomers(const std::vector<MemberView>& views, std::size_t self);

}  // namespace dpwa::collective
