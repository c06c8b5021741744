#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dpwa/launch/place.h"

// What each launcher says of a process that it has started. Pure.

namespace dpwa::launch {

inline constexpr int most_ranks = 65536;
inline constexpr int most_ports = 65535;

// The claim of a launcher about a process that it has started, with the variables that make it.
struct Claim {
  std::string rank_variable, size_variable;
  LaunchPlace place;
};

// The claim of one launcher; none: it has not started this process. Throws ConfigError for an
// incomplete environment and for a rank that does not exist.
using ClaimOf = std::optional<Claim> (*)(const LauncherEnvironment& environment);

// Those of launchers that start several processes on a host, and of what runs pods, or is a script.
// In both lists the inner one comes first where one launcher starts another.
const std::vector<ClaimOf>& claims_of_processes();
const std::vector<ClaimOf>& claims_of_pods();

// The claim of the first of these that makes one.
std::optional<Claim> first_claim(const std::vector<ClaimOf>& claims,
                                 const LauncherEnvironment& environment);

}  // namespace dpwa::launch
