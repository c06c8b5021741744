#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <optional>

#include "examples/train/batch.h"
#include "examples/train/models.h"
#include "examples/train/result.h"

namespace dpwa::train {

// Accuracy and mean cross-entropy over all of `data`, in evaluation mode (dropout off, BatchNorm's
// running statistics); the model's mode is put back. None when `give_up`, asked after each batch
// of 100, says so. `threads` at once, with the same result bit for bit whatever their number (0:
// this one, with its compute threads).
std::optional<Evaluation> evaluate(
    Classifier& model, const Dataset& data, c10::Device device,
    const std::function<bool()>& give_up = [] { return false; },
    const SampleProgress& progress = [](std::size_t, std::size_t) {}, std::size_t threads = 0);

}  // namespace dpwa::train
