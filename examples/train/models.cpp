#include "examples/train/models.h"

#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/parallel/seed_streams.h"

namespace dpwa::train {
namespace {

namespace nn = torch::nn;

nn::Conv2d convolution(std::int64_t from, std::int64_t to, std::int64_t kernel,
                       std::int64_t stride) {
  return nn::Conv2d(
      nn::Conv2dOptions(from, to, kernel).stride(stride).padding(kernel / 2).bias(false));
}

class BasicBlock final : public nn::Module {
 public:
  BasicBlock(std::int64_t from, std::int64_t to, std::int64_t stride)
      : conv1_(register_module("conv1", convolution(from, to, 3, stride))),
        bn1_(register_module("bn1", nn::BatchNorm2d(to))),
        conv2_(register_module("conv2", convolution(to, to, 3, 1))),
        bn2_(register_module("bn2", nn::BatchNorm2d(to))) {
    if (stride == 1 && from == to) return;
    shortcut_conv_ = register_module("shortcut_conv", convolution(from, to, 1, stride));
    shortcut_bn_ = register_module("shortcut_bn", nn::BatchNorm2d(to));
  }

  torch::Tensor forward(const torch::Tensor& input) {
    const auto inner = bn2_(conv2_(at::relu(bn1_(conv1_(input)))));
    return at::relu(inner + (shortcut_conv_ ? shortcut_bn_(shortcut_conv_(input)) : input));
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
  nn::Conv2d shortcut_conv_{nullptr};
  nn::BatchNorm2d shortcut_bn_{nullptr};
};

class ResNet18 final : public Classifier {
 public:
  explicit ResNet18(const Dataset& data)
      : stem_(register_module("stem", convolution(data.channels, 64, 3, 1))),
        stem_bn_(register_module("stem_bn", nn::BatchNorm2d(64))) {
    std::int64_t width = 64;
    for (const std::int64_t to : {64, 128, 256, 512}) {
      add_block(width, to, to == 64 ? 1 : 2);
      add_block(to, to, 1);
      width = to;
    }
    scores_ = register_module("scores", nn::Linear(width, data.classes));
    for (const auto& module : modules(false))
      if (const auto* conv = module->as<nn::Conv2d>())
        nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
  }

  torch::Tensor forward(torch::Tensor images) override {
    auto x = at::relu(stem_bn_(stem_(images)));
    for (const auto& block : blocks_) x = block->forward(x);
    return scores_(x.mean({2, 3}));
  }

 private:
  void add_block(std::int64_t from, std::int64_t to, std::int64_t stride) {
    const std::string name = "block" + std::to_string(blocks_.size() + 1);
    blocks_.push_back(register_module(name, std::make_shared<BasicBlock>(from, to, stride)));
  }

  nn::Conv2d stem_;
  nn::BatchNorm2d stem_bn_;
  std::vector<std::shared_ptr<BasicBlock>> blocks_;
  nn::Linear scores_{nullptr};
};

class Mlp final : public Classifier {
 public:
  explicit Mlp(const Dataset& data)
      : hidden_(register_module("fc1", nn::Linear(data.image_size(), 128))),
        scores_(register_module("fc2", nn::Linear(128, data.classes))) {}

  torch::Tensor forward(torch::Tensor images) override {
    return scores_(at::relu(hidden_(images.flatten(1))));
  }

 private:
  nn::Linear hidden_;
  nn::Linear scores_;
};

class Cnn final : public Classifier {
 public:
  explicit Cnn(const Dataset& data)
      : conv1_(register_module("conv1", convolution(data.channels, 16, 3, 1))),
        bn1_(register_module("bn1", nn::BatchNorm2d(16))),
        conv2_(register_module("conv2", convolution(16, 32, 3, 1))),
        bn2_(register_module("bn2", nn::BatchNorm2d(32))),
        hidden_(register_module("fc1", nn::Linear(32 * (data.height / 4) * (data.width / 4), 64))),
        dropout_(register_module("dropout", nn::Dropout(0.25))),
        scores_(register_module("fc2", nn::Linear(64, data.classes))) {}

  torch::Tensor forward(torch::Tensor images) override {
    auto x = at::max_pool2d(at::relu(bn1_(conv1_(images))), 2);
    x = at::max_pool2d(at::relu(bn2_(conv2_(x))), 2);
    return scores_(dropout_(at::relu(hidden_(x.flatten(1)))));
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
  nn::Linear hidden_;
  nn::Dropout dropout_;
  nn::Linear scores_;
};

}  // namespace

std::shared_ptr<Classifier> make_model(ModelKind kind, const Dataset& data, std::uint64_t seed) {
  if (kind != ModelKind::mlp && (data.height < 16 || data.width < 16))
    throw ConfigError("--model: '" + std::string(config::name_in(model_names, kind)) +
                      "' needs images of 16 x 16 pixels at least; accepted here: mlp");
  torch::manual_seed(SeedStreams(seed).common(SeedRole::weights));
  switch (kind) {
    case ModelKind::mlp:
      return std::make_shared<Mlp>(data);
    case ModelKind::cnn:
      return std::make_shared<Cnn>(data);
    case ModelKind::resnet18:
      break;
  }
  return std::make_shared<ResNet18>(data);
}

}  // namespace dpwa::train
