#include "examples/train/models.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "adapters/common/batch_norm.h"
#include "adapters/parallel/parallel_inference.h"
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

struct Batch {
  at::Tensor images;  // float32, samples x channels x height x width
  at::Tensor labels;  // int64, samples
};

// Normalised and on `device`. For a GPU it is copied from pinned memory, so that the copy does not
// wait for the GPU.
Batch make_batch(const Dataset& data, std::span<const std::uint32_t> samples, c10::Device device) {
  const auto count = static_cast<std::int64_t>(samples.size());
  const bool pinned = device.is_cuda();
  const auto host = at::TensorOptions().pinned_memory(pinned);
  Batch batch;
  batch.images =
      at::empty({count, static_cast<std::int64_t>(data.channels),
                 static_cast<std::int64_t>(data.height), static_cast<std::int64_t>(data.width)},
                host.dtype(at::kFloat));
  batch.labels = at::empty({count}, host.dtype(at::kLong));
  fill_batch(data, samples,
             {batch.images.mutable_data_ptr<float>(), samples.size() * data.image_size()},
             {batch.labels.mutable_data_ptr<std::int64_t>(), samples.size()});
  if (!device.is_cpu()) {
    batch.images = batch.images.to(device, /*non_blocking=*/true);
    batch.labels = batch.labels.to(device, /*non_blocking=*/true);
  }
  return batch;
}

// Small enough that resnet18 on one core reports its progress, and gives up, within seconds.
constexpr std::size_t batch_size = 100;

struct PartResult {
  double loss_sum = 0;
  std::int64_t correct = 0;
};

constexpr std::size_t most_samples = 4096;
constexpr std::size_t samples_per_batch = 256;

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

BatchLoss::BatchLoss(Classifier& model, const Dataset& data, std::vector<c10::Device> devices,
                     const std::function<std::shared_ptr<Classifier>()>& make)
    : model_(model), data_(data), device_(devices.front()) {
  if (devices.size() > 1) replicas_.emplace(model, devices, make);
}

at::Tensor BatchLoss::operator()(std::span<const std::uint32_t> samples) {
  if (!replicas_) return by(model_, device_, samples);
  return replicas_->loss(samples.size(),
                         [&](Classifier& model, c10::Device device, const ItemRange& part) {
                           return by(model, device, samples.subspan(part.from, part.count));
                         });
}

at::Tensor BatchLoss::by(Classifier& model, c10::Device device,
                         std::span<const std::uint32_t> samples) const {
  const Batch batch = make_batch(data_, samples, device);
  return at::cross_entropy_loss(model.forward(batch.images), batch.labels);
}

std::optional<Evaluation> evaluate(Classifier& model, const Dataset& data, c10::Device device,
                                   const std::function<bool()>& give_up,
                                   const SampleProgress& progress, std::size_t threads) {
  std::vector<std::uint32_t> samples(data.size());
  std::iota(samples.begin(), samples.end(), 0U);
  std::vector<PartResult> parts((samples.size() + batch_size - 1) / batch_size);
  progress(0, samples.size());
  const auto work = [&](std::size_t part) {
    const std::size_t from = part * batch_size;
    const std::size_t count = std::min(batch_size, samples.size() - from);
    const Batch batch = make_batch(data, {samples.data() + from, count}, device);
    const at::Tensor scores = model.forward(batch.images);
    const auto loss = at::cross_entropy_loss(scores, batch.labels, {}, at::Reduction::Sum);
    parts[part] = {loss.item<double>(),
                   scores.argmax(1).eq(batch.labels).sum().item<std::int64_t>()};
  };
  InferenceOptions options;
  options.threads = threads;
  options.go_on = [&](std::size_t done) {
    progress(std::min(done * batch_size, samples.size()), samples.size());
    return !give_up();
  };
  if (!infer_parts(model, parts.size(), work, options)) return std::nullopt;
  PartResult all;
  for (const PartResult& part : parts) {
    all.loss_sum += part.loss_sum;
    all.correct += part.correct;
  }
  const auto size = static_cast<double>(data.size());
  return Evaluation{static_cast<double>(all.correct) / size, all.loss_sum / size};
}

std::size_t reestimate_batch_norm(Classifier& model, const Dataset& train, std::uint64_t seed,
                                  c10::Device device, const SampleProgress& progress) {
  std::vector<std::uint32_t> samples(train.size());
  std::iota(samples.begin(), samples.end(), 0U);
  Random random(SeedStreams(seed).common(SeedRole::statistics));
  shuffle(samples, random);
  samples.resize(std::min(samples.size(), most_samples));
  // Every batch has the same weight, so all have one size: a smaller last batch is left out.
  const std::size_t size = std::min(samples.size(), samples_per_batch);
  return dpwa::reestimate_batch_norm(model, [&] {
    progress(0, samples.size());
    for (std::size_t from = 0; from + size <= samples.size(); from += size) {
      model.forward(make_batch(train, {samples.data() + from, size}, device).images);
      progress(from + size, samples.size());
    }
  });
}

}  // namespace dpwa::train
