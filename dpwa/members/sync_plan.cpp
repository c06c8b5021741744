#include "dpwa/members/sync_plan.h"

#include <algorithm>

namespace dpwa::members {

bool SyncPlan::any_behind() const {
  return std::ranges::find(behind, true) != behind.end();
}

bool SyncPlan::averages() const {
  return std::ranges::find(averaged, true) != averaged.end();
}

bool SyncPlan::takes_optimizer(int rank) const {
  return behind[static_cast<std::size_t>(rank)] || (is_resumed() && rank != source);
}

SyncPlan plan_sync(const std::vector<MemberState>& members) {
  const auto before = [](const MemberState& a, const MemberState& b) {
    return a.group_state != b.group_state ? a.group_state < b.group_state : a.clock > b.clock;
  };
  const MemberState furthest = *std::ranges::min_element(members, before);
  const auto alike = [&](const MemberState& one) {  // a rank below all that are not furthest
    return before(furthest, one) ? 0 : std::ranges::count(members, one);
  };
  const auto best = std::ranges::max_element(members, {}, alike);
  SyncPlan plan;
  plan.source = static_cast<int>(best - members.begin());
  plan.clock = best->clock;
  plan.made_in = best->made_in;
  plan.fresh = best->group_state == GroupState::none;
  const bool apart = best->group_state == GroupState::apart;
  for (const MemberState& member : members) {
    plan.behind.push_back(member != *best || (apart && &member != &*best));
    plan.averaged.push_back(apart && member.group_state == GroupState::apart);
    plan.newcomers = plan.newcomers || member.group_state != GroupState::member;
  }
  return plan;
}

std::int64_t packed(const MemberState& state) {
  const std::int64_t clock = state.clock << made_in_bits | state.made_in;
  return clock * 4 + static_cast<std::int64_t>(state.group_state);
}

MemberState unpacked(std::int64_t number) {
  const std::int64_t clock = number / 4;
  return {clock >> made_in_bits, static_cast<GroupState>(number % 4),
          static_cast<std::uint32_t>(clock) & ((1U << made_in_bits) - 1)};
}

std::optional<int> owner_of_optimizer(const std::vector<std::int64_t>& optimizers, int source,
                                      const std::vector<bool>& behind) {
  if (optimizers[static_cast<std::size_t>(source)] != 0) return source;
  std::optional<int> first;
  for (std::size_t rank = 0; rank < optimizers.size(); ++rank) {
    if (optimizers[rank] == 0) continue;
    if (!behind[rank]) return static_cast<int>(rank);
    if (!first) first = static_cast<int>(rank);
  }
  return first;
}

}  // namespace dpwa::members
