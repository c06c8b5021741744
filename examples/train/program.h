#pragma once

#include "examples/train/options.h"

namespace dpwa::train {

// One run of dpwa-train from configuration to result. Returns its exit code; throws UsageError,
// ConfigError or std::invalid_argument before anything is started, any other exception after.
int run_program(const TrainOptions& options);

}  // namespace dpwa::train
