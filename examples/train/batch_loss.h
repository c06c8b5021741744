#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "adapters/parallel/device_replicas.h"
#include "examples/train/dataset.h"
#include "examples/train/models.h"

namespace dpwa::train {

// The mean cross-entropy of a batch, ready for backward(): by the model alone, or by replicas of it
// on several devices. All outlive it. One owner, one thread.
class BatchLoss {
 public:
  // `devices`: that of the model first. `make`, for more than one: a model of the same kind.
  BatchLoss(Classifier& model, const Dataset& data, std::vector<c10::Device> devices = {c10::kCPU},
            const std::function<std::shared_ptr<Classifier>()>& make = {});

  at::Tensor operator()(std::span<const std::uint32_t> samples);

 private:
  at::Tensor by(Classifier& model, c10::Device device,
                std::span<const std::uint32_t> samples) const;

  Classifier& model_;
  const Dataset& data_;
  c10::Device device_;
  std::optional<DeviceReplicas<Classifier>> replicas_;
};

}  // namespace dpwa::train
