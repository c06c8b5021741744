#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "adapters/parallel/device_replicas.h"
#include "examples/train/data_sets.h"
#include "examples/train/options.h"
#include "examples/train/report.h"

namespace dpwa::train {

// A module that maps a batch of images (samples x channels x height x width) to class scores,
// before softmax.
class Classifier : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(torch::Tensor images) = 0;
};

// Shaped for `data`, on the CPU, with the weights of `seed`: the same on every node for the same
// seed.
//   mlp:      pixels - 128 - classes; 101,770 parameters for MNIST
//   cnn:      two convolutions with BatchNorm, a hidden layer with dropout
//   resnet18: ResNet-18 (He et al. 2015) with the 3 x 3 stem used for CIFAR
// Throws ConfigError when the images are too small for the model.
std::shared_ptr<Classifier> make_model(ModelKind kind, const Dataset& data, std::uint64_t seed);

// The mean cross-entropy of a batch, ready for backward(), by the model alone or by replicas of it
// on several devices. All arguments outlive it. One owner, one thread.
class BatchLoss {
 public:
  // `devices`: that of the model first. `make`, for more than one: a model of the same kind.
  BatchLoss(Classifier& model, const Dataset& data, std::vector<c10::Device> devices = {c10::kCPU},
            const std::function<std::shared_ptr<Classifier>()>& make = {});

  at::Tensor operator()(std::span<const std::uint32_t> samples);

 private:
  at::Tensor by(Classifier& model, c10::Device device,
                std::span<const std::uint32_t> samples) const;

  Classifier& model_;
  const Dataset& data_;
  c10::Device device_;
  std::optional<DeviceReplicas<Classifier>> replicas_;
};

// Accuracy and mean cross-entropy over all of `data`, in evaluation mode (dropout off, BatchNorm's
// running statistics); the mode of the model is restored. None when `give_up`, called after each
// batch of 100, returns true. Runs on `threads` threads at once (0: on this one, with its compute
// threads); the result does not depend on their number, bit for bit.
std::optional<Evaluation> evaluate(
    Classifier& model, const Dataset& data, c10::Device device,
    const std::function<bool()>& give_up = [] { return false; },
    const SampleProgress& progress = [](std::size_t, std::size_t) {}, std::size_t threads = 0);

// Measures the BatchNorm statistics of `model` again, on up to 4,096 samples of the whole training
// set that are drawn from `seed`. They are the same on every node, so equal models stay equal.
// Returns the number of layers measured.
std::size_t reestimate_batch_norm(
    Classifier& model, const Dataset& train, std::uint64_t seed, c10::Device device,
    const SampleProgress& progress = [](std::size_t, std::size_t) {});

}  // namespace dpwa::train
