#include "adapters/gossip/gossip_adapter.h"

#include <torch/optim/optimizer.h>

#include <utility>

#include "adapters/gossip/device_parameters.h"
#include "adapters/gossip/loss_reader.h"
#include "dpwa/gossip/host_parameters.h"

namespace dpwa {
namespace {

std::unique_ptr<Parameters> make_parameters(FlatParameters& flat) {
  if (!flat.device().is_cpu()) return std::make_unique<DeviceParameters>(flat);
  auto* data = static_cast<std::byte*>(flat.memory().mutable_data_ptr());
  return std::make_unique<HostParameters>(flat.manifest(),
                                          std::span(data, flat.manifest().total_bytes()));
}

}  // namespace

GossipAdapter::GossipAdapter(Config config, torch::nn::Module& model)
    : config_(std::move(config)),
      flat_(model),
      parameters_(make_parameters(flat_)),
      gossip_(std::make_unique<Gossip>(config_, *parameters_)) {}

GossipAdapter::~GossipAdapter() = default;

void GossipAdapter::start() {
  gossip_->start();
}

StepReport GossipAdapter::step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) {
  update_send(loss);
  optimizer.step();
  return update_wait(loss);
}

void GossipAdapter::update_send(const torch::Tensor& loss) {
  flat_.check();
  gossip_->update_send(read_later(loss));
}

StepReport GossipAdapter::update_wait(const torch::Tensor&) {
  return gossip_->update_wait();
}

FinishReport GossipAdapter::finish() {
  return gossip_->finish();
}

void GossipAdapter::leave() {
  gossip_->leave();
}

ResumeState GossipAdapter::resume_state() const {
  return gossip_->resume_state();
}

void GossipAdapter::restore(const ResumeState& state) {
  gossip_->restore(state);
}

}  // namespace dpwa
