#pragma once

#include "adapters/adapter.h"
#include "adapters/common/flat_parameters.h"

namespace dpwa {

// One node alone: step() is optimizer.step(). The baseline of every comparison, and the back end of
// a training program without a network.
class NullAdapter : public Adapter {
 public:
  NullAdapter(const Config& config, torch::nn::Module& model)
      : place_(place_in_file(config)), flat_(model) {}

  void start() override {}
  Place place() const override { return place_; }
  StepReport step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override;
  void update_send(const torch::Tensor& loss) override;
  StepReport update_wait(const torch::Tensor& loss) override;
  void reload(const Config& fresh) override;
  FinishReport finish() override { return {}; }
  void leave() override {}
  ResumeState resume_state() const override { return state_; }
  void restore(const ResumeState& state) override { state_ = state; }

 private:
  const Place place_;
  FlatParameters flat_;
  ResumeState state_;
};

}  // namespace dpwa
