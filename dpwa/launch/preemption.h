#pragma once

#include <optional>

#include "dpwa/config/config.h"
#include "dpwa/launch/place.h"

// What the engine that runs a process expects of it when it takes the machine away. Pure.

namespace dpwa::launch {

// The exit code of a process that stopped after a notice (SIGUSR1 or SIGUSR2): that of the file's
// `preempted_exit_code`. Without it 0 under torchrun, srun and mpirun, which take any other code
// for a failure of the whole run; else 143, as after SIGTERM: a Job of Kubernetes counts 0 as done,
// and never replaces the pod.
int preempted_code(const Config& config, const LauncherEnvironment& environment);

// DPWA_GRACE_S: the seconds from the first signal until the engine kills the process; none: not
// set. Throws ConfigError.
std::optional<unsigned> grace_seconds(const LauncherEnvironment& environment);

}  // namespace dpwa::launch
