#include "dpwa/launch/preemption.h"

#include <csignal>

namespace dpwa::launch {

int preempted_code(const Config& config, const LauncherEnvironment& environment) {
  if (config.preempted_exit_code) return *config.preempted_exit_code;
  const bool fails_the_run = is_torchrun(environment) || is_slurm_step(environment) ||
                             environment.has("OMPI_COMM_WORLD_RANK") || environment.has("PMI_RANK");
  return fails_the_run ? 0 : 128 + SIGTERM;
}

std::optional<unsigned> grace_seconds(const LauncherEnvironment& environment) {
  constexpr int most = 86'400;  // a day
  return environment.number("DPWA_GRACE_S", 1, most);
}

}  // namespace dpwa::launch
