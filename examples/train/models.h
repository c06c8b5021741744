#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>

#include "examples/train/data_sets.h"
#include "examples/train/options.h"

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

}  // namespace dpwa::train
