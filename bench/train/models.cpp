#include "bench/train/models.h"

#include <ATen/ops/relu.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/functional.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>
#include <torch/utils.h>

#include <stdexcept>
#include <utility>
#include <vector>

namespace dpwa::bench {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t classes = 10;
constexpr std::int64_t pixels = 784;
constexpr std::int64_t hidden = 1072;
constexpr std::int64_t wide = 4096;

nn::Conv2d convolution(std::int64_t from, std::int64_t to, std::int64_t kernel,
                       std::int64_t stride) {
  return nn::Conv2d(
      nn::Conv2dOptions(from, to, kernel).stride(stride).padding(kernel / 2).bias(false));
}

// A residual block. Modules in braces are made from left to right, as in Python.
class Block final : public nn::Module {
 public:
  Block(std::int64_t from, std::int64_t to, std::int64_t stride)
      : inner_(register_module(
            "inner", nn::Sequential{convolution(from, to, 3, stride), nn::BatchNorm2d(to),
                                    nn::ReLU(), convolution(to, to, 3, 1), nn::BatchNorm2d(to)})) {
    if (stride == 1 && from == to) return;
    short_ = register_module("short",
                             nn::Sequential(convolution(from, to, 1, stride), nn::BatchNorm2d(to)));
  }

  torch::Tensor forward(const torch::Tensor& input) {
    return at::relu(inner_->forward(input) + (short_ ? short_->forward(input) : input));
  }

 private:
  nn::Sequential inner_;
  nn::Sequential short_{nullptr};
};

}  // namespace

nn::Sequential make_classifier(const std::string& model) {
  if (model == "mlp")
    return nn::Sequential{nn::Linear(pixels, hidden), nn::ReLU(), nn::Linear(hidden, hidden),
                          nn::ReLU(), nn::Linear(hidden, classes)};
  if (model == "cnn")
    return nn::Sequential{convolution(1, 16, 3, 1),
                          nn::BatchNorm2d(16),
                          nn::ReLU(),
                          nn::MaxPool2d(2),
                          convolution(16, 32, 3, 1),
                          nn::BatchNorm2d(32),
                          nn::ReLU(),
                          nn::MaxPool2d(2),
                          nn::Flatten(),
                          nn::Linear(32 * 7 * 7, 64),
                          nn::ReLU(),
                          nn::Linear(64, classes)};
  if (model == "wide") {
    nn::Sequential layers;
    for (int i = 0; i < 4; ++i) {
      layers->push_back(nn::Linear(wide, wide));
      layers->push_back(nn::ReLU());
    }
    layers->push_back(nn::Linear(wide, classes));
    return layers;
  }
  if (model != "resnet18") throw std::invalid_argument("unknown model '" + model + "'");
  nn::Sequential layers{convolution(3, 64, 3, 1), nn::BatchNorm2d(64), nn::ReLU()};
  std::int64_t width = 64;
  for (const std::int64_t to : {64, 128, 256, 512}) {
    for (const std::int64_t stride : {to == 64 ? 1 : 2, 1}) {
      layers->push_back(std::make_shared<Block>(width, to, stride));
      width = to;
    }
  }
  layers->push_back(nn::Functional([](const torch::Tensor& x) { return x.mean({2, 3}); }));
  layers->push_back(nn::Linear(width, classes));
  return layers;
}

Batch make_batch(const std::string& model, std::int64_t samples) {
  std::vector<std::int64_t> shape{samples};
  if (model == "cnn") {
    shape.insert(shape.end(), {1, 28, 28});
  } else if (model == "resnet18") {
    shape.insert(shape.end(), {3, 32, 32});
  } else {
    shape.push_back(model == "wide" ? wide : pixels);
  }
  auto input = torch::randn(shape);
  return {std::move(input), torch::randint(0, classes, {samples})};
}

}  // namespace dpwa::bench
