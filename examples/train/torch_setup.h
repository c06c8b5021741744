#pragma once

#include <c10/core/Device.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <vector>

#include "dpwa/config/config.h"
#include "examples/train/options.h"

namespace dpwa::train {

// Those of --devices, or the one of --device; throws ConfigError when this build or machine does
// not have them. `cuda` without a number: each process of a host takes another GPU, by its local
// rank under a launcher, else by its place in the file.
std::vector<c10::Device> resolve_devices(const TrainOptions& options, const Config& config);

// The device that calls of this thread use where they name none, such as those of NCCL.
void make_current(c10::Device device);

// Once per process, before the first computation.
void set_compute_threads(int threads);

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const TrainOptions& options,
                                                        std::vector<torch::Tensor> parameters);

}  // namespace dpwa::train
