#pragma once

#include <cstddef>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/common/flat_parameters.h"
#include "adapters/common/module_tensors.h"
#include "adapters/kvstore/local_store.h"
#include "adapters/kvstore/torch_optimizer.h"
#include "adapters/kvstore/watched_tensors.h"
#include "dpwa/config/config.h"

namespace dpwa {

// A store in this process behind the adapter interface, for the types local_*. It has no network.
// local_update_cpu: the optimizer runs in the store, which has its state; local_allreduce_*: the
// gradients go through the store, and the program's optimizer steps, as it does for every model on
// a device. The gradients of several devices are averaged before
// (adapters/parallel/device_replicas.h).
class LocalKvstoreAdapter : public Adapter {
 public:
  LocalKvstoreAdapter(const Config& config, torch::nn::Module& model);

  void start() override;
  Place place() const override { return {}; }
  void average_gradients() override;
  StepReport step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override;
  StepReport skip_step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override;
  void update_send(const torch::Tensor& loss) override;
  StepReport update_wait(const torch::Tensor& loss) override;
  void reload(const Config& fresh) override;
  FinishReport finish() override;
  void leave() override;
  ResumeState resume_state() const override { return state_; }
  void restore(const ResumeState& state) override { state_ = state; }
  bool take_optimizer_state(torch::optim::Optimizer& optimizer) override;

 private:
  bool in_store() const { return type_ == KvstoreType::local_update_cpu; }
  void make_stores(const torch::optim::Optimizer& optimizer,
                   const std::vector<kvstore::OptimizerOptions>& options);
  void update(torch::optim::Optimizer& optimizer);
  void pass_gradients();
  StepReport end_step();

  FlatParameters flat_;
  const KvstoreType type_;
  const kvstore::CompressionOptions compression_;
  const NamedTensors trained_;
  kvstore::WrittenWeights written_;
  std::vector<kvstore::LocalStore> stores_;  // by parameter group; or one, of gradients
  bool running_ = false;
  bool passed_ = false;  // the gradients of this step
  ResumeState state_;
};

}  // namespace dpwa
