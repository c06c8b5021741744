#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "examples/train/dataset.h"

namespace dpwa::train {

// Told before the first batch and after each: how many samples of how many are done.
using SampleProgress = std::function<void(std::size_t done, std::size_t total)>;

struct Batch {
  at::Tensor images;  // float32, samples x channels x height x width
  at::Tensor labels;  // int64, samples
};

// Normalised and on `device`; pinned on the way to a GPU, so that the copy does not wait for it.
Batch make_batch(const Dataset& data, std::span<const std::uint32_t> samples, c10::Device device);

}  // namespace dpwa::train
