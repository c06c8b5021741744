#pragma once

#include "adapters/adapter.h"
#include "adapters/common/flat_parameters.h"

namespace dpwa {

// One node on its own: step() is optimizer.step(). The baseline of every comparison, and what a
// training program runs with when there is nobody to talk to.
class NullAdapter : public Adapter {
 public:
  explicit NullAdapter(torch::nn::Module& model) : flat_(model) {}

  void start() override {}
  StepReport step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override;
  void update_send(const torch::Tensor& loss) override;
  StepReport update_wait(const torch::Tensor& loss) override;
  void reload(const Config& fresh) override;
  FinishReport finish() override { return {}; }
  void leave() override {}
  ResumeState resume_state() const override { return state_; }
  void restore(const ResumeState& state) override { state_ = state; }

 private:
  FlatParameters flat_;
  ResumeState state_;
};

}  // namespace dpwa
