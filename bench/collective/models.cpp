#include "bench/collective/models.h"

#include <ATen/ops/relu.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <vector>

namespace dpwa::bench {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t classes = 10;
constexpr std::int64_t pixels = 784;
constexpr std::int64_t hidden = 1072;

class Mlp final : public Classifier {
 public:
  Mlp()
      : first_(register_module("fc1", nn::Linear(pixels, hidden))),
        second_(register_module("fc2", nn::Linear(hidden, hidden))),
        scores_(register_module("fc3", nn::Linear(hidden, classes))) {}

  torch::Tensor forward(const torch::Tensor& input) override {
    return scores_(at::relu(second_(at::relu(first_(input)))));
  }

 private:
  nn::Linear first_;
  nn::Linear second_;
  nn::Linear scores_;
};

nn::Conv2d convolution(std::int64_t from, std::int64_t to, std::int64_t kernel,
                       std::int64_t stride) {
  return nn::Conv2d(
      nn::Conv2dOptions(from, to, kernel).stride(stride).padding(kernel / 2).bias(false));
}

class Block final : public nn::Module {
 public:
  Block(std::int64_t from, std::int64_t to, std::int64_t stride)
      : conv1_(register_module("conv1", convolution(from, to, 3, stride))),
        bn1_(register_module("bn1", nn::BatchNorm2d(to))),
        conv2_(register_module("conv2", convolution(to, to, 3, 1))),
        bn2_(register_module("bn2", nn::BatchNorm2d(to))) {
    if (stride == 1 && from == to) return;
    short_conv_ = register_module("short_conv", convolution(from, to, 1, stride));
    short_bn_ = register_module("short_bn", nn::BatchNorm2d(to));
  }

  torch::Tensor forward(const torch::Tensor& input) {
    const auto inner = bn2_(conv2_(at::relu(bn1_(conv1_(input)))));
    return at::relu(inner + (short_conv_ ? short_bn_(short_conv_(input)) : input));
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
  nn::Conv2d short_conv_{nullptr};
  nn::BatchNorm2d short_bn_{nullptr};
};

class ResNet18 final : public Classifier {
 public:
  ResNet18()
      : stem_(register_module("stem", convolution(3, 64, 3, 1))),
        stem_bn_(register_module("stem_bn", nn::BatchNorm2d(64))) {
    std::int64_t width = 64;
    for (const std::int64_t to : {64, 128, 256, 512}) {
      for (const std::int64_t stride : {to == 64 ? 1 : 2, 1}) {
        const auto name = "block" + std::to_string(blocks_.size() + 1);
        blocks_.push_back(register_module(name, std::make_shared<Block>(width, to, stride)));
        width = to;
      }
    }
    scores_ = register_module("scores", nn::Linear(width, classes));
  }

  torch::Tensor forward(const torch::Tensor& input) override {
    auto x = at::relu(stem_bn_(stem_(input)));
    for (const auto& block : blocks_) x = block->forward(x);
    return scores_(x.mean({2, 3}));
  }

 private:
  nn::Conv2d stem_;
  nn::BatchNorm2d stem_bn_;
  std::vector<std::shared_ptr<Block>> blocks_;
  nn::Linear scores_{nullptr};
};

}  // namespace

std::shared_ptr<Classifier> make_classifier(const std::string& model) {
  if (model == "mlp") return std::make_shared<Mlp>();
  return std::make_shared<ResNet18>();
}

Batch make_batch(const std::string& model, std::int64_t samples) {
  auto input =
      model == "mlp" ? torch::randn({samples, pixels}) : torch::randn({samples, 3, 32, 32});
  return {std::move(input), torch::randint(0, classes, {samples})};
}

}  // namespace dpwa::bench
