#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <variant>

#include "dpwa/members/view.h"

namespace dpwa::members {

// Unique to its proposer, and ordered: a higher one replaces a lower one.
struct Ballot {
  std::uint64_t round = 0;  // 0: none
  ProcessId proposer{};
  auto operator<=>(const Ballot&) const = default;
};

// No run comes near: a ballot leaves room for later ones.
inline constexpr std::uint64_t most_rounds = std::uint64_t{1} << 62;

// Asks the voters of a view to take part in a ballot. Goes to those that are joining as well.
struct Prepare {
  Base base;
  Ballot ballot;
  bool operator==(const Prepare&) const = default;
};
struct Promise {
  Base base;
  Ballot ballot;    // that of the question
  ProcessId voter;  // another than the sender: the sender speaks for it from its kept vote
  bool granted = false;
  Ballot highest;   // not granted: what is promised already
  Ballot accepted;  // round 0: none
  View value;       // that was accepted
  // Of a process that speaks for itself and has promised: what it has completed of the operations.
  // It completes none until a view is installed.
  bool lives = false;
  Progress done;
  std::set<ProcessId> hears;  // of those that apply
  bool operator==(const Promise&) const = default;
};
struct Accept {
  Base base;
  Ballot ballot;
  View value;
  bool operator==(const Accept&) const = default;
};
struct Accepted {
  Base base;
  Ballot ballot;
  ProcessId voter;
  bool operator==(const Accepted&) const = default;
};
// A view that has been decided.
struct Installed {
  View view;
  bool operator==(const Installed&) const = default;
};
// Asks for the latest view: the receiver seems to have a later one.
struct AskView {
  Base base;  // that of the sender
  bool operator==(const AskView&) const = default;
};
// From a process that is in no view: it is there, and wants to join.
struct Apply {
  Base base;
  std::uint64_t settings = 0;
  bool serves = false;
  bool operator==(const Apply&) const = default;
};
// From one that is joining: the digest of its state after all operations through this one.
struct Ready {
  Base base;
  std::uint64_t through = 0;
  std::uint64_t state = 0;
  bool operator==(const Ready&) const = default;
};
// From a member that has done: the next view is to be without it.
struct Leave {
  Base base;
  bool operator==(const Leave&) const = default;
};
// The settings of the one that applies differ.
struct Refuse {
  Base base;
  bool operator==(const Refuse&) const = default;
};

using ViewMessage = std::variant<Prepare, Promise, Accept, Accepted, Installed, AskView, Apply,
                                 Ready, Leave, Refuse>;

}  // namespace dpwa::members
