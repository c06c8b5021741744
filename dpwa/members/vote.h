#pragma once

#include <optional>
#include <vector>

#include "dpwa/members/view_messages.h"

namespace dpwa::members {

// One acceptor of the decision on the view after the installed one: an instance of Paxos ("The
// Part-Time Parliament", Lamport 1998).
struct Vote {
  ProcessId owner;  // under an open view: any process of its name
  Ballot promised{};
  Ballot accepted{};
  View value{};
  bool operator==(const Vote&) const = default;

  // The fields `lives` and `done` of the answer are the caller's.
  Promise prepare(const Prepare& question);
  std::optional<Accepted> accept(const Accept& proposal);
};

// What a process keeps on its disk, written before each message that follows from it.
struct Kept {
  View installed;
  std::vector<Vote> votes;  // its own, then those of former processes that it speaks for
  bool operator==(const Kept&) const = default;
};

// What a process begins with after others of its machine that have all ended. Under an open view
// the vote is that of the name, whichever process gives it.
Kept begin_with(const ProcessId& self, std::optional<Kept> former);

}  // namespace dpwa::members
