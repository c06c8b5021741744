#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include "adapters/adapter.h"
#include "adapters/backend.h"
#include "adapters/common/flat_parameters.h"
#include "dpwa/config/open_log.h"
#include "dpwa/log/log.h"
#include "dpwa/rules/progress.h"

namespace dpwa {
namespace {

// One node alone: step() is optimizer.step(). The baseline of every comparison, and the back end of
// a training program without a network.
class NullAdapter : public Adapter {
 public:
  explicit NullAdapter(torch::nn::Module& model) : flat_(model) {}

  void start() override {}
  // Whatever the file lists, there are no other nodes, so all data are those of this one.
  Place place() const override { return {}; }
  StepReport step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override;
  StepReport skip_step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override;
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

}  // namespace

StepReport NullAdapter::step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) {
  update_send(loss);
  optimizer.step();
  return update_wait(loss);
}

StepReport NullAdapter::skip_step(torch::optim::Optimizer&, const torch::Tensor& loss) {
  flat_.check();
  return update_wait(loss);
}

void NullAdapter::update_send(const torch::Tensor&) {
  flat_.check();
  state_.clock = clock_after_publish(state_.clock);
}

StepReport NullAdapter::update_wait(const torch::Tensor&) {
  StepReport report;
  report.clock = state_.clock;
  return report;
}

void NullAdapter::reload(const Config& fresh) {
  open_log(fresh).use();
  log(LogLevel::info, "config", "reloaded the log settings; nothing else applies to backend null");
}

std::unique_ptr<Adapter> make_null(const Config& /*config*/, torch::nn::Module& model) {
  return std::make_unique<NullAdapter>(model);
}

}  // namespace dpwa
