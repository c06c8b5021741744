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
  const auto best = std::ranges::min_element(members, before);
  SyncPlan plan;
  plan.source = static_cast<int>(best - members.begin());
  plan.clock = best->clock;
  plan.fresh = best->group_state == GroupState::none;
  const bool apart = best->group_state == GroupState::apart;
  for (const MemberState& member : members) {
    const bool same = member.clock == best->clock && member.group_state == best->group_state;
    plan.behind.push_back(!same || (apart && &member != &*best));
    plan.averaged.push_back(apart && member.group_state == GroupState::apart);
    plan.newcomers = plan.newcomers || member.group_state != GroupState::member;
  }
  return plan;
}

std::int64_t packed(const MemberState& state) {
  return state.clock * 4 + static_cast<std::int64_t>(state.group_state);
}

MemberState unpacked(std::int64_t number) {
  return {number / 4, static_cast<GroupState>(number % 4)};
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
