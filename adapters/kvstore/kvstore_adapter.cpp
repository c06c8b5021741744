#include "adapters/kvstore/kvstore_adapter.h"

#include "adapters/backend.h"
#include "adapters/common/graph_capture.h"
#include "adapters/kvstore/local_adapter.h"
#include "adapters/kvstore/torch_optimizer.h"
#include "dpwa/config/backends.h"

namespace dpwa {

KvstoreAdapter::KvstoreAdapter(const Config& config, torch::nn::Module& model)
    : model_(model), worker_(config, model_), losses_(model_.device()) {}

void KvstoreAdapter::start() {
  worker_.start();
  hooks_ = std::make_unique<BackwardHooks>(
      model_.trained_parameters(),
      [this](std::size_t trained) {
        if (worker_.is_at_begin()) require_no_capture(model_.device());
        worker_.fired(trained);
      },
      [] {});
}

Accumulation KvstoreAdapter::accumulate() {
  if (!worker_.is_running()) return {};
  worker_.set_accumulating(true);
  return Accumulation([this] { worker_.set_accumulating(false); });
}

void KvstoreAdapter::set_optimizer(const torch::optim::Optimizer& optimizer) {
  worker_.set_optimizer(kvstore::TorchOptimizer(optimizer, model_.trained_parameters()));
}

StepReport KvstoreAdapter::make_step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss,
                                     bool skips) {
  kvstore::TorchOptimizer own(optimizer, model_.trained_parameters());
  return worker_.step(own, reading(loss), skips);
}

FinishReport KvstoreAdapter::finish() {
  const FinishReport report = worker_.finish();
  hooks_.reset();
  return report;
}

void KvstoreAdapter::leave() {
  hooks_.reset();
  worker_.leave();
}

bool KvstoreAdapter::take_optimizer_state(torch::optim::Optimizer& optimizer) {
  kvstore::TorchOptimizer own(optimizer, model_.trained_parameters());
  return worker_.take_optimizer_state(own);
}

std::unique_ptr<Adapter> make_kvstore(const Config& config, torch::nn::Module& model) {
  require_backend(config);
  if (is_local(config.kvstore.type)) return std::make_unique<LocalKvstoreAdapter>(config, model);
  if (!config.join.empty() || config.self_added)
    throw ConfigError(config.file.string() + ": '" + config.self +
                      "' joins, which backend kvstore does not offer; accepted: a node of the "
                      "file, which may come at any time");
  return std::make_unique<KvstoreAdapter>(config, model);
}

}  // namespace dpwa
