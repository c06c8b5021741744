#include "examples/train/models.h"

#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "dpwa/parallel/seed_streams.h"
#include "examples/train/errors.h"
#include "examples/train/resnet18.h"

namespace dpwa::train {
namespace {

namespace nn = torch::nn;

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
      : conv1_(register_module("conv1", convolution(data.channels, 16))),
        bn1_(register_module("bn1", nn::BatchNorm2d(16))),
        conv2_(register_module("conv2", convolution(16, 32))),
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
  static nn::Conv2d convolution(std::size_t from, std::size_t to) {
    return nn::Conv2d(nn::Conv2dOptions(from, to, 3).padding(1).bias(false));
  }
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
    throw UsageError("--model: '" + std::string(to_string(kind)) +
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
  return make_resnet18(data);
}

}  // namespace dpwa::train
