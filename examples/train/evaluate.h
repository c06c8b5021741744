#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <optional>

#include "examples/train/models.h"
#include "examples/train/result.h"

namespace dpwa::train {

// Accuracy and mean cross-entropy over all of `data`, in evaluation mode (dropout off, BatchNorm's
// running statistics); the model's mode is put back. None when `give_up`, asked after each batch,
// says so.
std::optional<Evaluation> evaluate(
    Classifier& model, const Dataset& data, c10::Device device,
    const std::function<bool()>& give_up = [] { return false; });

}  // namespace dpwa::train
