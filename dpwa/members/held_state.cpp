#include "dpwa/members/held_state.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace dpwa::members {

MemberState HeldState::own(bool newcomer) const {
  GroupState state = GroupState::none;
  if (!newcomer && holds_ == Holds::all) state = GroupState::member;
  if (!newcomer && holds_ == Holds::apart) state = GroupState::apart;
  return {std::llround(clock_), state, state == GroupState::member ? made_in_ : 0};
}

void HeldState::go_apart() {
  if (holds_ != Holds::nothing) holds_ = Holds::apart;
}

void HeldState::enter(const SyncPlan& plan, int rank) {
  plan_ = plan;
  if (plan.behind[static_cast<std::size_t>(rank)]) holds_ = Holds::nothing;
  next_ = Next::optimizers;
}

void HeldState::complete(int rank, std::uint64_t group) {
  clock_ = static_cast<double>(plan_.clock);
  made_in_ = plan_.made_in;
  group_ = static_cast<std::uint32_t>(group) & ((1U << made_in_bits) - 1);
  holds_ = plan_.takes_optimizer(rank) ? Holds::all_but_optimizer : Holds::all;
}

bool HeldState::begin_comparison() {
  next_ = Next::program;
  const bool takes = holds_ == Holds::all_but_optimizer;
  if (takes) holds_ = Holds::nothing;
  return takes;
}

void HeldState::compared() {
  holds_ = Holds::all;
}

bool HeldState::takes_program() {
  return next_ == Next::program && std::exchange(next_, Next::nothing) == Next::program &&
         !plan_.fresh;
}

}  // namespace dpwa::members
