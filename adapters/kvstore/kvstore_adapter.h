#pragma once

#include <memory>
#include <string>

#include "adapters/adapter.h"
#include "adapters/common/backward_hooks.h"
#include "adapters/common/loss_reader.h"
#include "adapters/kvstore/torch_model.h"
#include "dpwa/config/config.h"
#include "dpwa/kvworker/worker.h"

namespace dpwa {

// A worker of the parameter server (dpwa/kvworker/worker.h) behind the adapter interface, for the
// types dist_*.
class KvstoreAdapter : public Adapter {
 public:
  KvstoreAdapter(const Config& config, torch::nn::Module& model);
  ~KvstoreAdapter() override { leave(); }

  void start() override;
  Place place() const override { return worker_.place(); }
  // In addition to Adapter::require_same: throws std::length_error beyond
  // kvstore::max_run_settings_bytes.
  void require_same(const std::string& what, const std::string& value) override {
    worker_.require_same(what, value);
  }
  void average_gradients() override { worker_.average_gradients(); }
  Accumulation accumulate() override;
  void set_batch_size(std::uint64_t samples) override {
    worker_.set_samples(static_cast<double>(samples));
  }
  void set_optimizer(const torch::optim::Optimizer& optimizer) override;
  StepReport step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override {
    return make_step(optimizer, loss, /*skips=*/false);
  }
  StepReport skip_step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override {
    return make_step(optimizer, loss, /*skips=*/true);
  }
  void update_send(const torch::Tensor&) override { worker_.update_send(); }
  StepReport update_wait(const torch::Tensor& loss) override {
    return worker_.update_wait(reading(loss));
  }
  void show(const std::string& name, double value) override { worker_.show(name, value); }
  void reload(const Config& fresh) override { worker_.reload(fresh); }
  FinishReport finish() override;
  void leave() override;
  ResumeState resume_state() const override { return worker_.resume_state(); }
  void restore(const ResumeState& state) override { worker_.restore(state); }
  bool take_optimizer_state(torch::optim::Optimizer& optimizer) override;

 private:
  StepReport make_step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss, bool skips);
  kvstore::Worker::Loss reading(const torch::Tensor& loss) {
    return [this, &loss] { return losses_.known(loss); };
  }

  kvstore::TorchModel model_;
  kvstore::Worker worker_;
  std::unique_ptr<BackwardHooks> hooks_;
  LossReader losses_;
};

}  // namespace dpwa
