#include "examples/train/batch_loss.h"

#include <ATen/ops/cross_entropy_loss.h>

#include "examples/train/batch.h"

namespace dpwa::train {

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

}  // namespace dpwa::train
