#pragma once

#include "dpwa/members/sync_plan.h"

namespace dpwa::members {

// What one process holds of the state that the members of a group have in common, as it enters
// groups and steps in them: weights from the start of a group, the optimizer's state from its first
// step on. Whoever has taken over a part alone when the group fails takes all from others. Pure.
class HeldState {
 public:
  // The position: of the state that this process has, in steps.
  double clock() const { return clock_; }
  void set_clock(double clock) { clock_ = clock; }
  // The last group that it entered has made the step to this position.
  void made_step(double clock) {
    clock_ = clock;
    made_in_ = group_;
  }
  // What this process is in its next group.
  MemberState own(bool newcomer) const;
  // It trains on without a group, with its own optimizer.
  void go_apart();
  // From others, in its next group.
  void takes_all() { holds_ = Holds::nothing; }
  // Whether it has taken over a part of the state alone, because the group has failed meanwhile.
  bool is_broken() const { return holds_ == Holds::nothing; }

  // The transfer of weights begins, as planned by all members of a new group.
  void enter(const SyncPlan& plan, int rank);
  // It has ended well: from now on this process has the weights of the plan. `group`: a hash.
  void complete(int rank, std::uint64_t group);
  const SyncPlan& plan() const { return plan_; }

  // Whether the optimizers of the members are still to be compared: in their first step.
  bool is_to_compare() const { return next_ == Next::optimizers; }
  // Begins with it. True: this process takes over the optimizer's state.
  bool begin_comparison();
  void compared();  // all are equal
  // After that step: whether all take over the state of the program, except at the start of a run.
  bool takes_program();

 private:
  // Apart: all, after steps without a group.
  enum class Holds { nothing, all_but_optimizer, all, apart };
  enum class Next { optimizers, program, nothing };  // in the first step of a group

  SyncPlan plan_;  // of the last group
  double clock_ = 0;
  std::uint32_t group_ = 0;    // the last one that it entered
  std::uint32_t made_in_ = 0;  // MemberState
  Holds holds_ = Holds::nothing;
  Next next_ = Next::nothing;
};

}  // namespace dpwa::members
