#pragma once

#include <optional>
#include <string>

#include "dpwa/launch/place.h"
#include "dpwa/launch/variables.h"

// One function for each launcher: what it says to a process that it has started; none: it has not.
// They throw ConfigError for half an environment and for a rank that does not exist.

namespace dpwa::launch {

constexpr int most_ports = 65535;

// What a launcher says, with the variables that say it.
struct Claim {
  std::string rank_variable, size_variable;
  LaunchPlace place;
};

std::optional<Claim> claim_of_torchrun(const Variables& variables);
std::optional<Claim> claim_of_open_mpi(const Variables& variables);
std::optional<Claim> claim_of_slurm(const Variables& variables);
// A pod of an Indexed Job, or of a StatefulSet.
std::optional<Claim> claim_of_kubernetes(const Variables& variables,
                                         const Surroundings& surroundings);
// RANK and WORLD_SIZE by themselves: of a script, or of a launcher that imitates torchrun.
std::optional<Claim> claim_of_variables(const Variables& variables);

}  // namespace dpwa::launch
