#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/collective/replica.h"
#include "dpwa/collective/signature.h"
#include "dpwa/collective/step_group.h"
#include "dpwa/members/held_state.h"

namespace dpwa::collective {

using members::GroupState;
using members::MemberState;
using members::SyncPlan;

// How the members of a group hand the state that they have in common (members::HeldState) to those
// that lack it: weights and the state of the program when they enter a group, the optimizer's state
// in their first step. One (training) thread.
class StateTransfer {
 public:
  // `replica` outlives it.
  explicit StateTransfer(Replica& replica) : replica_(replica) {}

  // A part of the state of the program, in host memory that outlives this object. `form`: as in
  // Signature::Entry.
  void share(const std::string& form, std::span<std::byte> program) {
    program_.push_back({form, program});
  }

  double clock() const { return held_.clock(); }
  void set_clock(double clock) { held_.set_clock(clock); }
  void made_step(double clock) { held_.made_step(clock); }
  MemberState own_state(bool newcomer) const { return held_.own(newcomer); }
  void go_apart() { held_.go_apart(); }
  void takes_all() { held_.takes_all(); }
  bool is_broken() const { return held_.is_broken(); }

  // All members of a new group call it with the same plan. Those that are behind take over the
  // model. Throws CollectiveError: then they hold nothing.
  void enter(const StepGroup& group, const SyncPlan& plan);
  // The group can be used: from now on this node has the state of the plan.
  void complete(const StepGroup& group) { held_.complete(group.rank(), group.options().members); }
  const SyncPlan& plan() const { return held_.plan(); }

  // Whether the optimizers of the members are still to be compared: in their first step.
  bool is_to_compare() const { return held_.is_to_compare(); }
  // Compares them, their classes and options first, then their states, which those that are behind
  // have taken over by then. `own`: of the optimizer that makes the step; null on a node that has
  // run out of data or steps in halves. Throws CollectiveError: then one that was to take over the
  // state holds nothing.
  void compare(const StepGroup& group, OptimizerState* own);
  // After that step, because the program sets learning rates before a step: all take over the state
  // of the program, except at the start of a run. Throws CollectiveError.
  void hand_over_program(const StepGroup& group);

 private:
  struct Comparison {
    std::optional<int> owner;  // the rank whose optimizer counts; none: nobody has one
    bool fits = true;          // that of this node is like it
  };
  Comparison compare_words(const StepGroup& group, const Signature* own) const;
  void broadcast_program(const StepGroup& group) const;

  Replica& replica_;
  struct Shared {
    std::string form;
    std::span<std::byte> memory;
  };
  std::vector<Shared> program_;
  members::HeldState held_;
};

// What the optimizer of rank `root` saves, on all members. `own`: the optimizer of this member,
// read only at the root, where it may not be null. Throws CollectiveError.
std::string broadcast_state(const StepGroup& group, const OptimizerState* own, int root);

}  // namespace dpwa::collective
