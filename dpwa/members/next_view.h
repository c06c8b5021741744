#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dpwa/members/view_messages.h"

namespace dpwa::members {

// What the proposer of a view knows of the other processes.
struct Facts {
  std::vector<std::string> names;  // of the cluster file, in its order
  std::size_t enough = 0;          // of these names: with so many a run begins
  Quorum of_new_run = Quorum::majority;
  std::set<ProcessId> leaving;       // members that have done
  std::set<ProcessId> gone;          // suspected, or replaced by a later process
  std::set<ProcessId> ready;         // joining, with the state of the members
  std::map<ProcessId, Apply> apply;  // want to join, with the settings of the members
  bool closes = false;               // every voter has a later process
};

// Whether these voters decide on the view after `base`. Under an open view each name counts once.
bool is_decided(const View& base, const std::set<ProcessId>& voters, const Facts& facts);

// The answers to one ballot, by voter.
struct Promises {
  std::map<ProcessId, Promise> of;  // granted

  bool decide(const View& base, const Facts& facts) const;
  // Lives and has promised: it completes nothing more under this view.
  const Promise* living(const ProcessId& id) const;
  // Whether one that is joining has all operations that all voters have completed. Results of these
  // may have left the group, so a voter has to have them.
  bool caught_up(const View& base, const ProcessId& joining) const;
  // Whether all voters of these members hear it. One that some do not hear would hold them up.
  bool hear(const View& members, const ProcessId& applicant) const;
  // Of the accepted values that with the highest ballot: it may have been decided.
  const Promise* accepted() const;
};

// The view that a quorum of `promises` leads to; none: there is nobody to step and the run is not
// to be closed, or too few begin one, or no server is among them. Only processes that have promised
// stay, because the others may complete operations of the view before. `run`: a random number for a
// run that begins.
std::optional<View> next_view(const View& base, const Promises& promises, const Facts& facts,
                              std::uint64_t run);

// Whether the view should be followed by another.
bool wants_change(const View& base, const Facts& facts);

}  // namespace dpwa::members
