#pragma once

#include <torch/nn/modules/container/sequential.h>

#include <string>

namespace dpwa::bench {

// cnn: that of dpwa-train for MNIST without dropout, 106,000 parameters. mlp: 784 - 1072 - 1072 -
// 10, 2.0 million. wide: four layers of 4096 x 4096 and one of 10, 67.2 million or 269 MB.
// resnet18: ResNet-18 with the 3 x 3 stem used for CIFAR, 11.2 million. Weights of the default
// generator. bench/peers/ddp_step.py builds the same modules in the same order, so that equal seeds
// give equal weights. Throws std::invalid_argument on another name.
torch::nn::Sequential make_classifier(const std::string& model);

// One batch of random inputs and labels of 10 classes, from the default generator.
struct Batch {
  torch::Tensor input;
  torch::Tensor labels;
};
Batch make_batch(const std::string& model, std::int64_t samples);

}  // namespace dpwa::bench
