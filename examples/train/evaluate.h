#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "examples/train/data_sets.h"
#include "examples/train/models.h"
#include "examples/train/report.h"

namespace dpwa::train {

// Called before the first batch and after each one: `done` samples of `total` are finished.
using SampleProgress = std::function<void(std::size_t done, std::size_t total)>;

// Accuracy and mean cross-entropy over all of `data`, in evaluation mode (dropout off, BatchNorm's
// running statistics); the mode of the model is restored. None when `give_up`, called after each
// batch of 100, returns true. Runs on `threads` threads at once (0: on this one, with its compute
// threads); the result does not depend on their number, bit for bit.
std::optional<Evaluation> evaluate(
    Classifier& model, const Dataset& data, c10::Device device,
    const std::function<bool()>& give_up = [] { return false; },
    const SampleProgress& progress = [](std::size_t, std::size_t) {}, std::size_t threads = 0);

// Measures the BatchNorm statistics of `model` again, on up to 4,096 samples of the whole training
// set that are drawn from `seed`. They are the same on every node, so equal models stay equal.
// Returns the number of layers measured.
std::size_t reestimate_batch_norm(
    Classifier& model, const Dataset& train, std::uint64_t seed, c10::Device device,
    const SampleProgress& progress = [](std::size_t, std::size_t) {});

}  // namespace dpwa::train
