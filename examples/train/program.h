#pragma once

#include "examples/train/options.h"

namespace dpwa::train {

// One run of dpwa-train from configuration to result. Returns its exit code; throws ConfigError
// or std::invalid_argument before anything is started, any other exception after.
int run_program(const TrainOptions& options);

// --find-batch: tries steps with the model, optimizer and devices of the options, without a
// network, and prints what they took and the largest --batch-size. Returns the exit code: 1 when
// not even one sample fits.
int find_batch(const TrainOptions& options);

}  // namespace dpwa::train
