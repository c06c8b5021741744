#include "adapters/common/batch_norm.h"

#include <torch/nn/modules/batchnorm.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "adapters/common/training_state.h"

namespace dpwa {
namespace {

using torch::nn::BatchNormOptions;
using torch::nn::Module;

// One BatchNorm of any dimension, set up to measure from construction to destruction.
class MeasuredLayer {
 public:
  template <class Layer>
  explicit MeasuredLayer(Layer& layer)
      : options_(layer.options),
        mean_(layer.running_mean),
        variance_(layer.running_var),
        batches_(layer.num_batches_tracked),
        momentum_(layer.options.momentum()),
        mean_before_(mean_.clone()),
        variance_before_(variance_.clone()),
        batches_before_(batches_.clone()) {
    layer.reset_running_stats();
    layer.options.momentum(std::nullopt);
    layer.train();
  }
  MeasuredLayer(const MeasuredLayer&) = delete;
  MeasuredLayer& operator=(const MeasuredLayer&) = delete;
  ~MeasuredLayer() {
    options_.momentum(momentum_);
    if (!keep_) {
      mean_.copy_(mean_before_);
      variance_.copy_(variance_before_);
    }
    batches_.copy_(batches_before_);
  }

  // Keeps the measured statistics, if there are any.
  bool keep() { return keep_ = batches_.item<std::int64_t>() > 0; }

 private:
  BatchNormOptions& options_;
  at::Tensor mean_;
  at::Tensor variance_;
  at::Tensor batches_;
  const std::optional<double> momentum_;
  const at::Tensor mean_before_;
  const at::Tensor variance_before_;
  const at::Tensor batches_before_;
  bool keep_ = false;
};

template <class Layer>
bool is_layer(const Module& module, bool with_statistics) {
  const auto* layer = dynamic_cast<const Layer*>(&module);
  return layer != nullptr && (!with_statistics || layer->options.track_running_stats());
}

bool has_layer(const Module& module, bool with_statistics) {
  const auto is = [with_statistics](const Module& one) {
    return is_layer<torch::nn::BatchNorm1dImpl>(one, with_statistics) ||
           is_layer<torch::nn::BatchNorm2dImpl>(one, with_statistics) ||
           is_layer<torch::nn::BatchNorm3dImpl>(one, with_statistics);
  };
  const auto below = module.modules(/*include_self=*/false);
  return is(module) || std::ranges::any_of(below, [&](const auto& one) { return is(*one); });
}

template <class Layer>
bool measure(Module& module, std::vector<std::unique_ptr<MeasuredLayer>>& layers) {
  auto* layer = dynamic_cast<Layer*>(&module);
  if (layer == nullptr) return false;
  if (layer->options.track_running_stats())
    layers.push_back(std::make_unique<MeasuredLayer>(*layer));
  return true;
}

}  // namespace

std::size_t reestimate_batch_norm(Module& module, const std::function<void()>& forward_passes) {
  const at::NoGradGuard no_grad;
  const EvaluationMode evaluation(module);
  std::vector<std::unique_ptr<MeasuredLayer>> layers;
  for (Module* each : parts_of(module)) {
    if (!measure<torch::nn::BatchNorm1dImpl>(*each, layers) &&
        !measure<torch::nn::BatchNorm2dImpl>(*each, layers))
      measure<torch::nn::BatchNorm3dImpl>(*each, layers);
  }
  forward_passes();
  return static_cast<std::size_t>(
      std::ranges::count_if(layers, [](const auto& layer) { return layer->keep(); }));
}

bool has_batch_norm(const Module& module) {
  return has_layer(module, /*with_statistics=*/true);
}

bool normalises_batches(const Module& module) {
  return has_layer(module, /*with_statistics=*/false);
}

}  // namespace dpwa
