#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "dpwa/collective/replica.h"
#include "dpwa/collective/signature.h"
#include "dpwa/collective/step_group.h"
#include "dpwa/collective/sync_plan.h"

namespace dpwa::collective {

// What this node holds of the state that the members of a group have in common, and how they hand
// it to those that lack it: weights and the state of the program when they enter a group, the
// optimizer's state in their first step. One (training) thread.
class StateTransfer {
 public:
  // `replica` outlives it.
  explicit StateTransfer(Replica& replica) : replica_(replica) {}

  // The state of the program, in host memory that outlives this object. `form`: as in
  // Signature::Entry.
  void share(const std::string& form, std::span<std::byte> program) {
    form_ = form;
    program_ = program;
  }

  // The position: of the state that this node has, in steps.
  double clock() const { return clock_; }
  void set_clock(double clock) { clock_ = clock; }
  // What this node is in its next group.
  MemberState own_state(bool newcomer) const;
  // It trains on without a group, with its own optimizer.
  void go_apart();
  // Whether it has taken over a part of the state alone, because the group has failed meanwhile.
  bool is_broken() const { return holds_ == Holds::nothing; }

  // All members of a new group call it with the same plan. Those that are behind take over the
  // model. Throws CollectiveError: then they hold nothing.
  void enter(const StepGroup& group, const SyncPlan& plan);
  // The group can be used: from now on this node has the state of the plan.
  void complete(int rank);
  const SyncPlan& plan() const { return plan_; }

  // Whether the optimizers of the members are still to be compared: in their first step.
  bool is_to_compare() const { return next_ == Next::optimizers; }
  // Compares them, their classes and options first, then their states, which those that are behind
  // have taken over by then. `own`: of the optimizer that makes the step; null on a node that has
  // run out of data or steps in halves. Throws CollectiveError: then one that was to take over the
  // state holds nothing.
  void compare(const StepGroup& group, OptimizerState* own);
  // After that step, because the program sets learning rates before a step: all take over the state
  // of the program, except at the start of a run. Throws CollectiveError.
  void hand_over_program(const StepGroup& group);

 private:
  // Apart: all, after steps without a group.
  enum class Holds { nothing, all_but_optimizer, all, apart };
  enum class Next { optimizers, program, nothing };  // in the first step of a group
  struct Comparison {
    std::optional<int> owner;  // the rank whose optimizer counts; none: nobody has one
    bool fits = true;          // that of this node is like it
  };
  Comparison compare_words(const StepGroup& group, const Signature* own) const;
  void broadcast_program(const StepGroup& group) const;

  Replica& replica_;
  std::string form_;  // of the state of the program; empty: it has none
  std::span<std::byte> program_;
  SyncPlan plan_;  // of the last group
  double clock_ = 0;
  Holds holds_ = Holds::nothing;
  Next next_ = Next::nothing;
};

// What the optimizer of rank `root` saves, on all members. `own`: the optimizer of this member,
// read only at the root, where it may not be null. Throws CollectiveError.
std::string broadcast_state(const StepGroup& group, const OptimizerState* own, int root);

}  // namespace dpwa::collective
