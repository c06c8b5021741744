#include "adapters/gossip/gossip_adapter.h"

#include <ATen/Parallel.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "adapters/backend.h"
#include "adapters/common/device_parameters.h"
#include "dpwa/attach/attached_gossip.h"
#include "dpwa/snapshot/mark.h"

namespace dpwa {
namespace {

// In ResumeState::own, and so in checkpoints.
constexpr const char* lineage = "lineage";
constexpr const char* incarnation = "incarnation";

unsigned threads() {
  return static_cast<unsigned>(std::max(1, at::get_num_threads()));
}

}  // namespace

GossipAdapter::GossipAdapter(Config config, torch::nn::Module& model)
    : config_(std::move(config)),
      model_(model),
      flat_(model, [this](std::size_t bytes) { return allocate(bytes); }),
      losses_(flat_.device()) {
  make_session();
}

void GossipAdapter::make_session() {
  if (shared_) {
    gossip_ =
        std::make_unique<attach::AttachedGossip>(config_, flat_.manifest(), shared_, threads());
    return;
  }
  parameters_ = parameters_in(flat_, threads());
  if (config_.gossip.daemon) {
    gossip_ = std::make_unique<attach::AttachedGossip>(config_, *parameters_);
  } else {
    gossip_ = std::make_unique<Gossip>(config_, *parameters_);
  }
}

void GossipAdapter::require_same(const std::string& what, const std::string& value) {
  const auto [setting, is_new] = settings_.emplace(what, value);
  if (!is_new) setting->second += ", " + value;
}

void GossipAdapter::mark_model(const std::string& what, const std::string& value) {
  flat_.mark({what, value});
  marked_ = true;
}

AlignedBuffer GossipAdapter::allocate(std::size_t bytes) {
  if (!config_.gossip.daemon) return AlignedBuffer(bytes);
  shared_ = attach::allocate_parameters(bytes);
  return AlignedBuffer(std::shared_ptr<std::byte>(shared_, shared_->data()), bytes);
}

GossipAdapter::~GossipAdapter() = default;

GossipSession& GossipAdapter::session() const {
  if (!gossip_) throw std::logic_error("an adapter whose start() has failed for lack of memory");
  return *gossip_;
}

Gossip& GossipAdapter::gossip() {
  return dynamic_cast<Gossip&>(session());
}

void GossipAdapter::start() {
  flat_.check();
  for (const auto& [what, value] : settings_) flat_.mark(setting_mark(what, value));
  if (marked_ || !settings_.empty()) {  // nothing has used the session yet
    gossip_.reset();
    parameters_.reset();  // a device may not have room for both
    make_session();
    if (restored_) gossip_->restore(*restored_);
  }
  gossip_->start();
  missing_steps_.emplace(model_);
  phase_ = Phase::running;
}

StepReport GossipAdapter::step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) {
  update_send(loss);
  optimizer.step();
  return update_wait(loss);
}

// The weights are those of the step before: it publishes none, and the clock stands still. The loss
// may be that of an overflow, and is not read.
StepReport GossipAdapter::skip_step(torch::optim::Optimizer&, const torch::Tensor&) {
  if (is_running()) {
    flat_.check();
    missing_steps_->step();
  }
  return update_wait({});
}

void GossipAdapter::update_send(const torch::Tensor& loss) {
  if (is_running()) {
    flat_.check();
    missing_steps_->step();
    gossip_->update_send(losses_.read(loss));
    sent_loss_ = loss;
  }
}

// A loss that was sent is known together with the snapshot. Another loss on a device is waited for
// if there is something to blend.
StepReport GossipAdapter::update_wait(const torch::Tensor& loss) {
  if (is_running()) {
    const torch::Tensor sent = std::exchange(sent_loss_, torch::Tensor());
    const bool is_new = loss.defined() && loss.numel() == 1 && !loss.is_same(sent);
    if (!is_new) return gossip_->update_wait();
    return gossip_->update_wait([&loss] { return loss.item<double>(); });
  }
  StepReport report;
  report.clock = session().resume_state().clock;
  return report;
}

void GossipAdapter::reload(const Config& fresh) {
  session().reload(fresh);
}

FinishReport GossipAdapter::finish() {
  if (phase_ == Phase::running) {
    flat_.check();
    finished_ = session().finish();
  }
  leave();
  return finished_;
}

void GossipAdapter::leave() {
  if (gossip_) gossip_->leave();
  missing_steps_.reset();
  if (phase_ == Phase::running) phase_ = Phase::left;
}

ResumeState GossipAdapter::resume_state() const {
  const GossipState state = session().resume_state();
  return {state.clock, {{lineage, state.lineage}, {incarnation, state.incarnation}}};
}

// A checkpoint of another back end has only a clock: its weights have no lineage here.
void GossipAdapter::restore(const ResumeState& state) {
  const auto own = [&state](const char* name) {
    const auto found = state.own.find(name);
    return found == state.own.end() ? 0 : found->second;
  };
  restored_ = {state.clock, own(lineage), own(incarnation)};
  session().restore(*restored_);
}

std::unique_ptr<Adapter> make_gossip(const Config& config, torch::nn::Module& model) {
  return std::make_unique<GossipAdapter>(config, model);
}

}  // namespace dpwa
