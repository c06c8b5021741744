#include "examples/train/batch.h"

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

}  // namespace dpwa::train
