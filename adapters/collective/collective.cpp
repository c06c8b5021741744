#include "adapters/collective/collective.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>

#include "adapters/collective/gathering.h"
#include "adapters/collective/torch_replica.h"
#include "adapters/common/module_tensors.h"
#include "dpwa/base/random.h"
#include "dpwa/collective/group_within.h"
#include "dpwa/collective/state_transfer.h"
#include "dpwa/config/backends.h"
#include "dpwa/group/group_endpoint.h"
#include "dpwa/node/endpoint.h"

namespace dpwa {

using collective::NamedTensor;
using collective::Operations;
using collective::ReduceOptions;

namespace {

constexpr std::chrono::seconds form_limit(60);

}  // namespace

Collective::Collective(const Config& config) {
  require_plaintext_allowed(config);
  require_one_family(config);
  collective::require_engine(config);
  const auto inbox = std::make_shared<group::Inbox>();
  endpoint_ = group::group_endpoint(config, inbox);
  endpoint_->start(config.collective.start_wait);
  group_ = collective::gather_all(config, endpoint_->local(), inbox);
  endpoint_->local().state = wire::NodeState::ready;
  for (const NodeEntry& node : config.nodes)
    hosts_.push_back(node.addresses.empty() ? node.host : node.addresses.front());
}

Collective::Collective(std::unique_ptr<collective::ProcessGroup> group,
                       std::vector<std::string> hosts)
    : group_(std::move(group)), hosts_(std::move(hosts)) {}

Collective::~Collective() = default;
Collective::Collective(Collective&&) noexcept = default;

void Collective::shutdown() noexcept {
  group_->leave(collective::leave_limit);
}

int Collective::rank() const {
  return group_->rank();
}

int Collective::size() const {
  return group_->size();
}

int Collective::local_rank() const {
  const auto own = hosts_.begin() + rank();
  return static_cast<int>(std::count(hosts_.begin(), own, *own));
}

int Collective::local_size() const {
  return static_cast<int>(std::ranges::count(hosts_, hosts_[static_cast<std::size_t>(rank())]));
}

at::Tensor Collective::allreduce(const std::string& name, const at::Tensor& tensor,
                                 const ReduceOptions& options) {
  return Operations(*group_).allreduce({name, tensor}, options);
}

std::vector<at::Tensor> Collective::grouped_allreduce(const std::vector<NamedTensor>& tensors,
                                                      const ReduceOptions& options) {
  return Operations(*group_).grouped_allreduce(tensors, options);
}

collective::Handle Collective::allreduce_async(const std::string& name, const at::Tensor& tensor,
                                               const ReduceOptions& options) {
  return Operations(*group_).allreduce_async({{name, tensor}}, options);
}

at::Tensor Collective::allgather(const std::string& name, const at::Tensor& tensor) {
  return Operations(*group_).allgather({name, tensor});
}

void Collective::broadcast(const std::string& name, const at::Tensor& tensor, int root) {
  const at::NoGradGuard no_grad;
  Operations(*group_).broadcast({name, tensor}, root);
}

at::Tensor Collective::reducescatter(const std::string& name, const at::Tensor& tensor,
                                     const ReduceOptions& options) {
  return Operations(*group_).reducescatter({name, tensor}, options);
}

std::pair<at::Tensor, std::vector<std::int64_t>> Collective::alltoall(
    const std::string& name, const at::Tensor& tensor, const std::vector<std::int64_t>& splits) {
  return Operations(*group_).alltoall({name, tensor}, splits);
}

void Collective::barrier() {
  Operations(*group_).barrier();
}

int Collective::join() {
  return Operations(*group_).join();
}

void Collective::broadcast_parameters(torch::nn::Module& module, int root) {
  for (const auto& [name, tensor] : parameters_of(module)) broadcast(name, tensor, root);
  for (const auto& [name, tensor] : buffers_of(module)) broadcast(name, tensor, root);
}

void Collective::broadcast_optimizer_state(torch::optim::Optimizer& optimizer, int root) {
  collective::TorchOptimizer state(optimizer);
  const std::string saved = collective::broadcast_state(*group_, &state, root);
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
        collective::Failure::usage, "subset", group_->engine(),
        "a rank that does not exist, a rank given twice, or no rank at all");
  }
  const at::Tensor first = members.clone();
  broadcast("the ranks of a subset", first, 0);
  const bool same = first.equal(members);
  const auto all_same =
      allreduce("whether all ask for one subset", at::empty({1}, at::kLong).fill_(same ? 1 : 0),
                {.reduction = collective::Reduction::min});
  if (*all_same.const_data_ptr<std::int64_t>() == 0) {
    throw collective::CollectiveError(collective::Failure::mismatch, "subset", group_->engine(),
                                      "not all ranks ask for the same one");
  }
  ++subsets_;
  // Members of a launcher are all of its processes: a part of them needs an engine that has to
  // meet.
  collective::Engine engine = group_->engine_used();
  if (engine.has_members) engine = collective::make_engine(collective::EngineKind::automatic);
  const collective::Connector connector = collective::connector_of(engine);
  const auto place = std::ranges::find(ranks, rank());
  if (place == ranks.end()) {
    collective::form_within(*group_, connector, {});
    return nullptr;
  }
  collective::GroupOptions options;
  options.rank = static_cast<int>(place - ranks.begin());
  options.size = static_cast<int>(ranks.size());
  options.epoch = subsets_;
  options.members = derive_seed(group_->epoch(), {subsets_});
  options.own_address = hosts_[static_cast<std::size_t>(rank())];
  options.security = group_->options().security;
  options.same_host = group_->options().same_host;
  options.form_timeout = form_limit;
  options.timeout = std::chrono::hours(24);
  std::unique_ptr<collective::ProcessGroup> group(static_cast<collective::ProcessGroup*>(
      collective::form_within(*group_, connector, options).release()));
  std::vector<std::string> hosts;
  for (const int member : ranks) hosts.push_back(hosts_[static_cast<std::size_t>(member)]);
  return std::unique_ptr<Collective>(new Collective(std::move(group), std::move(hosts)));
}

}  // namespace dpwa
