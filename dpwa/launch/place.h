#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

// The environment variables by which a launcher (torchrun, srun, mpirun, Kubernetes and what runs
// on it) tells its processes their place. Pure, except for launcher_environment().

namespace dpwa::launch {

// The traces of its start that a process can see. Errors name the variable.
struct LauncherEnvironment {
  std::function<std::string(const std::string& name)> variable;  // empty: not set
  std::string host_name;                        // of this machine, such as "train-2"
  std::function<std::string()> full_host_name;  // with its domain, where it has one
  // Names the process that gave `variable` to this one and to others beside it: the nearest
  // ancestor that does not have the variable itself. Empty: not known.
  std::function<std::string(const std::string& variable)> starter;

  bool has(const std::string& name) const { return !variable(name).empty(); }
  // None: not set. Throws ConfigError for anything but a whole number of that range.
  std::optional<int> number(const std::string& name, int low, int high) const;
  // Throw ConfigError "environment: NAME: not set, BECAUSE".
  int need_number(const std::string& name, int low, int high, const std::string& because) const;
  std::string need_text(const std::string& name, const std::string& because) const;

  // Throws ConfigError "environment: NAME: problem".
  [[noreturn]] static void fail(const std::string& name, const std::string& problem);
};

// The environment of this process.
LauncherEnvironment launcher_environment();

// One process among those that a launcher has started together.
struct LaunchPlace {
  std::string launcher;  // for messages: "torchrun", "Slurm", ...
  std::string run;       // the same in all processes of one start, and in no other start
  int rank = 0;
  int size = 1;
  int local_rank = 0;     // among those on this host, where the launcher tells
  bool one_host = false;  // all processes are known to be on one host
  // Where they find one another: the host of rank 0, unless the launcher hosts that point itself.
  std::string meeting_host;
  std::uint16_t meeting_port = 0;
  bool hosted = false;  // a c10d::TCPStore of the launcher listens there
};

// The place of this process; none: no launcher has started it. When one launcher has started
// another, the inner one counts: torchrun before mpirun before srun before Kubernetes. Throws
// ConfigError for an incomplete environment, for a rank that does not exist, and when RANK and
// WORLD_SIZE contradict the launcher.
std::optional<LaunchPlace> find_place(const LauncherEnvironment& environment);

// Where this process listens: DPWA_PORT, or else `first`, and its rank among those of its host; 0:
// neither is given. Throws ConfigError for what is no port.
std::uint16_t own_port(const LauncherEnvironment& environment, int local_rank,
                       std::uint16_t first = 0);

// Whether torchrun, or srun, has started this process.
bool is_torchrun(const LauncherEnvironment& environment);
bool is_slurm_step(const LauncherEnvironment& environment);

// The first name in a list of hosts as Slurm writes it: "n03" of "n[03-07,9],m1".
std::string first_host(const std::string& list);

}  // namespace dpwa::launch
