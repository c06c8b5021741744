#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>

#include "examples/train/batch.h"
#include "examples/train/dataset.h"
#include "examples/train/models.h"

namespace dpwa::train {

// Measures the BatchNorm statistics of `model` anew on up to 4,096 samples of the whole training
// set, drawn from `seed`: the same on every node, so equal models stay equal. Returns the number of
// layers measured.
std::size_t reestimate_batch_norm(
    Classifier& model, const Dataset& train, std::uint64_t seed, c10::Device device,
    const SampleProgress& progress = [](std::size_t, std::size_t) {});

}  // namespace dpwa::train
