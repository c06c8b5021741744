#pragma once

#include "examples/svi/options.h"

namespace dpwa::svi {

// Runs one node; the exit code. Throws ConfigError and train::UsageError before anything is
// started.
int run_program(const SviOptions& options);

}  // namespace dpwa::svi
