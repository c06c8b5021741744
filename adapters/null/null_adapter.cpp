#include "adapters/null/null_adapter.h"

#include <torch/optim/optimizer.h>

#include "dpwa/config/open_log.h"
#include "dpwa/log/log.h"
#include "dpwa/rules/clock.h"

namespace dpwa {

StepReport NullAdapter::step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) {
  update_send(loss);
  optimizer.step();
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

}  // namespace dpwa
