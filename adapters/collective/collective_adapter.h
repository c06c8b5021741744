#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/collective/torch_replica.h"
#include "adapters/common/flat_parameters.h"
#include "adapters/common/loss_reader.h"
#include "dpwa/collective/collective_node.h"
#include "dpwa/config/config.h"

namespace dpwa {

// Synchronous data parallel behind the adapter interface: CollectiveNode (dpwa/collective) with a
// model of LibTorch, whose gradients are averaged while backward() runs.
class CollectiveAdapter : public Adapter {
 public:
  CollectiveAdapter(const Config& config, torch::nn::Module& model);

  void start() override;
  Place place() const override { return node_->place(); }
  void share(const torch::Tensor& state) override;
  void require_same(const std::string& what, const std::string& value) override {
    node_->require_same(what, value);
  }
  void average_gradients() override { node_->average_gradients(); }
  Accumulation accumulate() override;
  void set_batch_size(std::uint64_t samples) override {
    replica_.set_samples(static_cast<double>(samples));
  }
  // In addition to Adapter::step: with a policy other than stop the optimizer must live until the
  // next step or the end, because a node that joins later takes over its state.
  StepReport step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override {
    return make_step(optimizer, loss, /*skips=*/false);
  }
  // The others wait for this exchange, so the clock counts it.
  StepReport skip_step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override {
    return make_step(optimizer, loss, /*skips=*/true);
  }
  bool should_stop(bool wanted) override { return node_->should_stop(wanted); }
  void update_send(const torch::Tensor& loss) override {
    node_->send(reading(loss), /*publishes=*/true);
  }
  StepReport update_wait(const torch::Tensor& loss) override {
    return node_->update_wait(reading(loss));
  }
  void show(const std::string& name, double value) override { node_->show(name, value); }
  void reload(const Config& fresh) override { node_->reload(fresh); }
  FinishReport finish() override { return node_->finish(); }
  void leave() override { node_->leave(); }
  ResumeState resume_state() const override { return node_->resume_state(); }
  void restore(const ResumeState& state) override { node_->restore(state); }

 private:
  StepReport make_step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss, bool skips);
  collective::CollectiveNode::Loss reading(const torch::Tensor& loss) {
    return [this, &loss] { return losses_.read(loss); };
  }

  const Config config_;
  FlatParameters flat_;
  LossReader losses_;
  std::unique_ptr<Parameters> parameters_;  // of a node that may train apart
  std::vector<at::Tensor> program_;         // what was shared: keeps its memory
  collective::TorchReplica replica_;
  std::optional<collective::CollectiveNode> node_;
};

}  // namespace dpwa
