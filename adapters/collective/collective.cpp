#include "adapters/collective/collective.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>

#include "adapters/collective/gathering.h"
#include "adapters/collective/torch_optimizer.h"
#include "adapters/common/module_tensors.h"
#include "dpwa/base/random.h"
#include "dpwa/collective/group_within.h"
#include "dpwa/collective/state_transfer.h"
#include "dpwa/config/backends.h"
#include "dpwa/group/group_endpoint.h"
#include "dpwa/node/endpoint.h"

namespace dpwa {

namespace {

constexpr std::chrono::seconds form_limit(60);

}  // namespace

Collective::Parts Collective::joined(const Config& config) {
  require_plaintext_allowed(config);
  require_one_family(config);
  collective::require_engine(config);
  const auto inbox = std::make_shared<group::Inbox>();
  Parts parts{group::group_endpoint(config, inbox), nullptr, {}};
  parts.endpoint->start(config.collective.start_wait);
  parts.group = collective::gather_all(config, parts.endpoint->local(), inbox);
  parts.endpoint->local().state = wire::NodeState::ready;
  for (const NodeEntry& node : config.nodes)
    parts.hosts.push_back(node.addresses.empty() ? node.host : node.addresses.front());
  return parts;
}

Collective::Collective(const Config& config) : Collective(joined(config)) {}

Collective::Collective(Parts parts) : Operations(*parts.group), parts_(std::move(parts)) {}

Collective::~Collective() = default;
Collective::Collective(Collective&&) noexcept = default;

void Collective::shutdown() noexcept {
  parts_.group->leave(collective::leave_limit);
}

int Collective::local_rank() const {
  const auto own = parts_.hosts.begin() + rank();
  return static_cast<int>(std::count(parts_.hosts.begin(), own, *own));
}

int Collective::local_size() const {
  return static_cast<int>(
      std::ranges::count(parts_.hosts, parts_.hosts[static_cast<std::size_t>(rank())]));
}

void Collective::broadcast_parameters(torch::nn::Module& module, int root) {
  for (const auto& [name, tensor] : parameters_of(module)) broadcast(name, tensor, root);
  for (const auto& [name, tensor] : buffers_of(module)) broadcast(name, tensor, root);
}

void Collective::broadcast_optimizer_state(torch::optim::Optimizer& optimizer, int root) {
  collective::TorchOptimizer state(optimizer);
  const std::string saved = collective::broadcast_state(group(), &state, root);
  if (rank() != root) state.load(saved);
}

std::unique_ptr<Collective> Collective::subset(const std::vector<int>& ranks) {
  auto members = at::empty({static_cast<std::int64_t>(ranks.size())}, at::kLong);
  std::ranges::copy(ranks, members.mutable_data_ptr<std::int64_t>());
  const auto known = [this](int rank) { return rank >= 0 && rank < size(); };
  std::vector<int> sorted = ranks;
  std::ranges::sort(sorted);
  if (ranks.empty() || !std::ranges::all_of(ranks, known) ||
      std::ranges::adjacent_find(sorted) != sorted.end()) {
    throw collective::CollectiveError(
        collective::Failure::usage, "subset", group().engine(),
        "a rank that does not exist, a rank given twice, or no rank at all");
  }
  const at::Tensor first = members.clone();
  broadcast("the ranks of a subset", first, 0);
  const bool same = first.equal(members);
  const auto all_same =
      allreduce("whether all ask for one subset", at::empty({1}, at::kLong).fill_(same ? 1 : 0),
                {.reduction = collective::Reduction::min});
  if (*all_same.const_data_ptr<std::int64_t>() == 0) {
    throw collective::CollectiveError(collective::Failure::mismatch, "subset", group().engine(),
                                      "not all ranks ask for the same one");
  }
  ++subsets_;
  // Members of a launcher are all of its processes: a part of them needs an engine that has to
  // meet.
  collective::Engine engine = group().engine_used();
  if (engine.has_members) engine = collective::make_engine(collective::EngineKind::automatic);
  const collective::Connector connector = collective::connector_of(engine);
  const auto place = std::ranges::find(ranks, rank());
  if (place == ranks.end()) {
    collective::form_within(group(), connector, {});
    return nullptr;
  }
  collective::GroupOptions options;
  options.rank = static_cast<int>(place - ranks.begin());
  options.size = static_cast<int>(ranks.size());
  options.epoch = subsets_;
  options.members = derive_seed(group().epoch(), {subsets_});
  options.own_address = parts_.hosts[static_cast<std::size_t>(rank())];
  options.security = group().options().security;
  options.same_host = group().options().same_host;
  options.form_timeout = form_limit;
  options.timeout = std::chrono::hours(24);
  Parts parts;
  parts.group.reset(static_cast<collective::ProcessGroup*>(
      collective::form_within(group(), connector, options).release()));
  for (const int member : ranks)
    parts.hosts.push_back(parts_.hosts[static_cast<std::size_t>(member)]);
  return std::unique_ptr<Collective>(new Collective(std::move(parts)));
}

}  // namespace dpwa
