#pragma once

#include <optional>
#include <string>

#include "dpwa/launch/place.h"

namespace dpwa::launch {

// Variables of the environment as numbers, with errors that name them.
class Variables {
 public:
  explicit Variables(const LauncherEnvironment& environment) : environment_(environment) {}

  std::string text(const std::string& name) const { return environment_.variable(name); }
  bool has(const std::string& name) const { return !text(name).empty(); }
  // None: not set. Throws ConfigError for anything but a whole number of that range.
  std::optional<int> number(const std::string& name, int low, int high) const;
  int need_number(const std::string& name, int low, int high, const std::string& because) const;
  std::string need_text(const std::string& name, const std::string& because) const;

  // Throws ConfigError "environment: NAME: problem".
  [[noreturn]] static void fail(const std::string& name, const std::string& problem);

 private:
  const LauncherEnvironment& environment_;
};

inline constexpr int most_ranks = 65536;
inline constexpr int most_ports = 65535;

// The claim of a launcher, with the variables that make it.
struct Claim {
  std::string rank_variable, size_variable;
  LaunchPlace place;
};

// One function for each launcher: its claim about a process that it has started; none: it has not
// started this one. They throw ConfigError for an incomplete environment and for a rank that does
// not exist.
std::optional<Claim> claim_of_torchrun(const Variables& variables);
std::optional<Claim> claim_of_open_mpi(const Variables& variables);
std::optional<Claim> claim_of_slurm(const Variables& variables);
// A pod of an Indexed Job, or of a StatefulSet.
std::optional<Claim> claim_of_kubernetes(const Variables& variables,
                                         const LauncherEnvironment& environment);
// RANK and WORLD_SIZE by themselves: of a script, or of a launcher that imitates torchrun.
std::optional<Claim> claim_of_variables(const Variables& variables);

}  // namespace dpwa::launch
