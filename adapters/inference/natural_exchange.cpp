#include "adapters/inference/natural_exchange.h"

#include <torch/optim/optimizer.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <stdexcept>

#include "adapters/common/training_state.h"

namespace dpwa {

// While it lives, the posteriors have their natural form. The end gives them the usual form back:
// bit for bit if the adapter has changed nothing.
class NaturalExchange::OnTheWire {
 public:
  explicit OnTheWire(NaturalExchange& exchange) : exchange_(exchange) {
    const torch::NoGradGuard no_gradients;
    for (GaussianPosterior* posterior : exchange.posteriors_) {
      kept_.push_back({posterior->mean().clone(), posterior->scale().clone()});
      sent_.push_back(posterior->natural());
      write(*posterior, sent_.back().weighted_mean, sent_.back().precision);
    }
  }
  ~OnTheWire() {
    const torch::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      GaussianPosterior& posterior = *exchange_.posteriors_[i];
      const NaturalParameters now{posterior.mean().clone(), posterior.scale().clone()};
      write(posterior, kept_[i].mean, kept_[i].scale);
      const bool unchanged = now.weighted_mean.equal(sent_[i].weighted_mean) &&
                             now.precision.equal(sent_[i].precision);
      if (!unchanged && !posterior.set_natural(now)) ++exchange_.refused_;
    }
  }
  OnTheWire(const OnTheWire&) = delete;
  OnTheWire& operator=(const OnTheWire&) = delete;

 private:
  struct Usual {
    at::Tensor mean, scale;
  };

  static void write(const GaussianPosterior& posterior, const at::Tensor& first,
                    const at::Tensor& second) {
    posterior.mean().copy_(first);
    posterior.scale().copy_(second);
  }

  NaturalExchange& exchange_;
  std::vector<Usual> kept_;
  std::vector<NaturalParameters> sent_;
};

NaturalExchange::NaturalExchange(const Config& config, Adapter& adapter, torch::nn::Module& model)
    : adapter_(adapter) {
  if (config.backend != Backend::gossip) return;
  for (torch::nn::Module* const module : parts_of(model))
    if (auto* posterior = dynamic_cast<GaussianPosterior*>(module))
      posteriors_.push_back(posterior);
  if (posteriors_.empty())
    throw std::invalid_argument(
        "the model has no Gaussian posterior, so it has no natural parameters to exchange");
  // A block of them, or rounded ones, would be those of another Gaussian.
  if (config.gossip.blocks > 1)
    fail_at_key(config, "gossip.blocks", "natural parameters are blended as a whole; accepted: 1");
  if (config.transport.encoding != Codec::raw)
    fail_at_key(config, "transport.encoding",
                "natural parameters are blended without rounding; accepted: fp32");
  adapter_.mark_model(mark, "natural parameters");
}

void NaturalExchange::start() {
  const OnTheWire wire(*this);
  adapter_.start();
}

StepReport NaturalExchange::step(torch::optim::Optimizer& optimizer, const at::Tensor& loss) {
  if (posteriors_.empty()) return adapter_.step(optimizer, loss);
  {
    const OnTheWire wire(*this);
    adapter_.update_send(loss);
  }
  optimizer.step();
  const OnTheWire wire(*this);
  return adapter_.update_wait(loss);
}

FinishReport NaturalExchange::finish() {
  const OnTheWire wire(*this);
  return adapter_.finish();
}

}  // namespace dpwa
