#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "adapters/collective/membership_notes.h"

namespace dpwa::collective {

// One node of the cluster file as another one sees it at one moment.
struct Sight {
  enum class Reach {
    answers,
    refused,  // its machine says that nothing listens there: the process has ended
    silent,
  };
  std::string name;
  Reach reach = Reach::silent;
  bool given_up = false;          // silent for so long that it counts as lost
  bool finished = false;          // says that it has done with training
  std::uint64_t incarnation = 0;  // of the process that answered
  GroupNotes notes{};
  // In what it differs from this node, of what has to be the same in a group; empty: in nothing, as
  // far as both have said. Such a node is never admitted.
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
  Membership group{};
  std::size_t host = 0;
  std::uint16_t port = 0;
  std::string why{};
};

// What a node does towards its next group. Nobody coordinates: all decide by this rule, on what
// the status documents of all nodes say; the lowest place among those that are left hosts the
// store. Pure.
//
// A group that lost members goes on where it has the majority of the last one: members that have
// ended (refused, or started again as another process) do not count; of the others more than half
// have to be there, or just half with the lowest place among them. That holds for every group that
// a member has voted for since, too, as it may have formed. So a cut link never yields two groups:
// the rule is dynamic voting (Jajodia, Mutchler 1990; Lotem, Keidar, Dolev 1997).
//
// Before the first group of a run all nodes of the file have to be there. A node that is in no
// group while others train in one waits until they admit it: `admits` says that this node is
// between two steps, where that can be.
//
// `sights`: by place in the file; of the node itself at `self`: what it says of itself.
// `failed`: the epoch of its own last attempt, if that came to nothing.
NextGroup next_group(const std::vector<Sight>& sights, std::size_t self, bool admits,
                     std::uint64_t failed = 0);

// Whether the group of `self` goes on without the node at `self`, which thus comes as a newcomer.
bool is_left_behind(const std::vector<Sight>& sights, std::size_t self);

// Nodes that wait to be admitted to the group of `self`.
bool has_newcomers(const std::vector<Sight>& sights, std::size_t self);

}  // namespace dpwa::collective
