#include "examples/train/batch.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>

namespace dpwa::train {

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
