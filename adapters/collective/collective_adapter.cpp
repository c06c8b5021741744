#include "adapters/collective/collective_adapter.h"

#include <ATen/Parallel.h>
#include <c10/core/DeviceGuard.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <stdexcept>

#include "adapters/backend.h"
#include "adapters/collective/engine/tensor_form.h"
#include "adapters/collective/gathering.h"
#include "adapters/collective/torch_optimizer.h"
#include "adapters/common/device_parameters.h"
#include "adapters/common/tensor_bytes.h"
#include "dpwa/config/backends.h"

namespace dpwa {

CollectiveAdapter::CollectiveAdapter(const Config& config, torch::nn::Module& model)
    : config_(config),
      flat_(model),
      losses_(flat_.device()),
      replica_(config_.collective, model, flat_) {
  if (!config_.join.empty() || config_.self_added)
    throw ConfigError(config_.file.string() + ": '" + config_.self +
                      "' joins, which backend collective does not offer; accepted: a node of the "
                      "file, whose place in it is its rank");
  require_backend(config_);
  collective::require_engine(config_);
  collective::require_device(config_, flat_.device());
  if (collective::may_train_apart(config_.collective))
    parameters_ = parameters_in(flat_, static_cast<unsigned>(std::max(1, at::get_num_threads())));
  node_.emplace(config_, collective::connector_of(config_).engine, replica_, parameters_.get());
}

void CollectiveAdapter::start() {
  const c10::DeviceGuard on_model(flat_.device());  // NCCL uses the GPU that is current
  flat_.check();
  const at::Tensor no_loss;
  node_->start(collective::connector_of(config_), reading(no_loss));
}

void CollectiveAdapter::share(const torch::Tensor& state) {
  if (!state.is_cpu() || !state.is_contiguous())
    throw std::invalid_argument("share(): needs a contiguous tensor in host memory");
  program_.push_back(state);
  node_->share(collective::form_of(state), bytes_of(state));
}

Accumulation CollectiveAdapter::accumulate() {
  if (!node_->is_running()) return {};
  replica_.set_accumulating(true);
  return Accumulation([this] { replica_.set_accumulating(false); });
}

StepReport CollectiveAdapter::make_step(torch::optim::Optimizer& optimizer,
                                        const torch::Tensor& loss, bool skips) {
  collective::TorchOptimizer state(optimizer);
  return node_->make_step(state, [&optimizer] { optimizer.step(); }, reading(loss), skips);
}

std::unique_ptr<Adapter> make_collective(const Config& config, torch::nn::Module& model) {
  return std::make_unique<CollectiveAdapter>(config, model);
}

}  // namespace dpwa
