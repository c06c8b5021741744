#include "adapters/collective/state_sync.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "adapters/collective/engine/operations.h"
#include "adapters/common/training_state.h"

namespace dpwa::collective {
namespace {

// Through one all-reduce on all members, so that the bits are the same.
void average_regions(const ProcessGroup& group, const SyncPlan& plan, const FlatParameters& flat) {
  const bool counts = plan.averaged[static_cast<std::size_t>(group.rank())];
  const auto number = static_cast<double>(std::ranges::count(plan.averaged, true));
  for (std::size_t i = 0; i < flat.manifest().regions().size(); ++i) {
    at::Tensor region = flat.region(i);
    if (!region.is_floating_point()) continue;
    if (!counts) region.zero_();
    region.copy_(
        Operations(group).allreduce({"the weights of those that trained apart", region},
                                    {.reduction = Reduction::sum, .postscale = 1 / number}));
  }
}

}  // namespace

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

void sync_model(const ProcessGroup& group, const SyncPlan& plan, const FlatParameters& flat) {
  const at::NoGradGuard no_grad;
  if (plan.averages()) average_regions(group, plan, flat);
  // Frozen parameters and counts too; where nobody is behind all have the same already, but for
  // the first weights of a run.
  if (plan.any_behind() || plan.fresh)
    Operations(group).broadcast({"the model", flat.memory()}, plan.source);
}

std::string broadcast_state(const torch::optim::Optimizer* own, const ProcessGroup& group,
                            int root) {
  std::string text;
  auto bytes = at::empty({1}, at::kLong);
  if (group.rank() == root) {
    text = saved_state(*own);
    *bytes.mutable_data_ptr<std::int64_t>() = static_cast<std::int64_t>(text.size());
  }
  Operations(group).broadcast({"the size of the optimizer's state", bytes}, root);
  const std::int64_t size = *bytes.const_data_ptr<std::int64_t>();
  auto content = at::empty({size}, at::kByte);
  if (group.rank() == root) std::memcpy(content.mutable_data_ptr(), text.data(), text.size());
  Operations(group).broadcast({"the state of the optimizer", content}, root);
  return {static_cast<const char*>(content.const_data_ptr()), static_cast<std::size_t>(size)};
}

}  // namespace dpwa::collective
